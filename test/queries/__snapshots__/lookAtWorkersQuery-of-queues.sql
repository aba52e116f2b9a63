    select w.id, w.name, s.queues,
      date_part('epoch', w.started_at) * 1000 as started_at,
      date_part('epoch', w.seen_at) * 1000 as seen_at, w.session is not null as session,
      coalesce(h.holds, 0)::float8 as holds
    from "queue_workers" as w
    cross join lateral (
      select jsonb_agg(q.queue order by q.place) as queues
      from jsonb_array_elements_text(w.queues) with ordinality as q(queue, place)
      where q.queue in (select jsonb_array_elements_text($1::text::jsonb))
    ) as s
    left join (
      select j.worker_id, count(*) as holds from "queue_jobs" as j
      where j.worker_id is not null and j.queue in (select jsonb_array_elements_text($2::text::jsonb))
      group by j.worker_id
    ) as h on h.worker_id = w.id where s.queues is not null
    order by w.name, w.id limit $3
-- $1 = "[\"mail\"]"
-- $2 = "[\"mail\"]"
-- $3 = 10
