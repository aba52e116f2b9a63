    select b.id, b.ended_at is null as open, b.cancel_reason is not null as unwanted,
      b.ended_at is null and b.cancel_reason is null and (
        select r.job_id from "queue_waits" as i
        join "queue_results" as r on r.queue = i.queue and r.job_id = i.job_id
        where i.batch_id = b.id and i.policy = 'parent' and r.state = 'cancelled'
          and (select j.id from "queue_jobs" as j where j.queue = i.queue and j.id = i.job_id) is null
        limit 1
      ) is not null as orphaned,
      coalesce(b.recounted_at, b.created_at)
        < statement_timestamp() - $1 * interval '1 millisecond' as stale
    from "queue_batches" as b where b.id > $2::int8 order by b.id limit $3::int4
-- $1 = 60000
-- $2 = 42
-- $3 = 1000
