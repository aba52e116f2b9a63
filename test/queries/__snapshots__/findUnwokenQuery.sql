    with batches as materialized (
      select b.id, b.ended_at is not null as ended, b.waiting, b.failed > 0
        and not exists (select from "queue_tallies" as t where t.batch_id = b.id and t.failed < 0) as failing
      from "queue_batches" as b where b.id = any($1::text::int8[])
    )
    select distinct j.queue, j.id
    from batches as b
    cross join lateral (
      select i.job_id, i.queue, i.policy from "queue_waits" as i where i.batch_id = b.id offset 0
    ) as i
    cross join lateral (
      select j.queue, j.id, j.blockers from "queue_jobs" as j
      where j.queue = i.queue and j.id = i.job_id and j.id > $2::int8 and j.worker_id is null and j.blockers <> 0
        and j.run_at > statement_timestamp()
      offset 0
    ) as j
    where case
        when j.blockers > 0 then i.policy in ('run', 'cancel')
          and (b.ended or (b.failing and i.policy = 'cancel'))
        when i.policy not in ('parent', 'detached') then false
        when not b.ended then b.failing and b.waiting = 'failure'
        else -j.blockers > (
          select count(*) from "queue_waits" as w join "queue_batches" as o on o.id = w.batch_id
          where w.job_id = j.id and w.queue = j.queue and w.policy in ('parent', 'detached')
            and o.ended_at is null and o.waiting is not null
        ) end
    order by j.id limit $3::int4
-- $1 = "{42,43}"
-- $2 = 0
-- $3 = 1000
