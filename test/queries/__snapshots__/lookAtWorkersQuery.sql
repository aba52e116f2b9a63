    select w.id, w.name, w.queues,
      date_part('epoch', w.started_at) * 1000 as started_at,
      date_part('epoch', w.seen_at) * 1000 as seen_at, w.session is not null as session,
      coalesce(h.holds, 0)::float8 as holds
    from "queue_workers" as w
    left join (
      select j.worker_id, count(*) as holds from "queue_jobs" as j
      where j.worker_id is not null
      group by j.worker_id
    ) as h on h.worker_id = w.id
    order by w.name, w.id limit $1
-- $1 = 10
