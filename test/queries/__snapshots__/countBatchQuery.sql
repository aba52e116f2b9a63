    with tallied as materialized (
      select coalesce(sum(added), 0) as added, coalesce(sum(ended), 0) as ended,
        coalesce(sum(failed), 0) as failed
      from "queue_tallies" where batch_id = $1::int8
    )
    select b.recounted_at::text as recounted_at, (
      b.pending + t.added - t.ended
        - (select count(*) from "queue_jobs" as j where j.batch_id = $2::int8)
    )::float8 as missing, (
      (select count(*) from "queue_results" as r where r.batch_id = $3::int8 and r.state = 'completed')
        - (b.total - b.pending + t.ended - b.failed - t.failed)
    )::float8 as completed
    from "queue_batches" as b cross join tallied as t
    where b.id = $4::int8 and b.ended_at is null
-- $1 = 42
-- $2 = 42
-- $3 = 42
-- $4 = 42
