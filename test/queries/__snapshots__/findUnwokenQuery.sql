    select distinct j.queue, j.id
    from "queue_batches" as b
    join "queue_waits" as i on i.batch_id = b.id
    join "queue_jobs" as j on j.queue = i.queue and j.id = i.job_id
    where b.id = any($1::text::int8[])
      and (b.ended_at is not null or (b.failed > 0
        and not exists (select from "queue_tallies" as t where t.batch_id = b.id and t.failed < 0)
        and (i.policy = 'cancel' or b.waiting = 'failure')))
      and j.worker_id is null and j.blockers is not null
        and (j.run_at = 'infinity' or (j.attempt = 0 and j.run_at > statement_timestamp()))
    limit $2::int4
-- $1 = "{42,43}"
-- $2 = 1000
