    with expired as (
      select r.job_id, r.queue from "queue_results" as r
      where r.finished_at < statement_timestamp() - $1::float8 * interval '1 millisecond'
      order by r.finished_at limit $2
      for update skip locked
    ),
    pruned as (
      delete from "queue_results" as r
      where (r.job_id, r.queue) in (select job_id, queue from expired)
      returning 1
    )
    select count(*)::float8 as pruned, (select count(*) from "queue_workers")::float8 as workers from pruned
-- $1 = 86400000
-- $2 = 1000
