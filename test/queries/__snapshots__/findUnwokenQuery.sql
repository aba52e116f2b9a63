    with batches as materialized (
      select b.id, b.ended_at is not null as ended, b.waiting, b.failed > 0
        and not exists (select from "queue_tallies" as t where t.batch_id = b.id and t.failed < 0) as failing
      from "queue_batches" as b where b.id = any($1::text::int8[])
    ),
    waits as materialized (
      select i.job_id, i.queue, i.policy, b.ended, b.waiting, b.failing from batches as b
      cross join lateral (
        select i.job_id, i.queue, i.policy from "queue_waits" as i where i.batch_id = b.id offset 0
      ) as i
    )
    select j.queue, j.id from "queue_jobs" as j
    where j.id = any(array(select w.job_id from waits as w)) and j.id > $2::int8 and j.worker_id is null and j.blockers <> 0
        and j.run_at > statement_timestamp()
      and case
        when j.blockers > 0 then (j.queue, j.id) in (
          select w.queue, w.job_id from waits as w
          where w.policy in ('run', 'cancel') and (w.ended or (w.failing and w.policy = 'cancel')))
        when (j.queue, j.id) in (
          select w.queue, w.job_id from waits as w
          where w.policy in ('parent', 'detached') and not w.ended and w.failing and w.waiting = 'failure'
        ) then true
        when (j.queue, j.id) in (
          select w.queue, w.job_id from waits as w where w.policy in ('parent', 'detached') and w.ended
        ) then -j.blockers > (
          select count(*) from "queue_waits" as w join "queue_batches" as o on o.id = w.batch_id
          where w.job_id = j.id and w.queue = j.queue and w.policy in ('parent', 'detached')
            and o.ended_at is null and o.waiting is not null
        ) end
    order by j.id limit $3::int4
-- $1 = "{42,43}"
-- $2 = 0
-- $3 = 1000
