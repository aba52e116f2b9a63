    with over as (
      select m.worker_id, m.report, m.queue, m.kind from "queue_metrics" as m
      where (m.minutes = 1 and m.at < statement_timestamp() - interval '48 hours'
          and m.at < to_timestamp(coalesce((select max(f.report) + 3600 from "queue_metrics" as f where f.worker_id = 0
          and f.report <= date_part('epoch', statement_timestamp())::int8 - 3600), 0)))
        or (m.minutes = 60 and m.at < statement_timestamp() - interval '720 hours')
      limit $1
      for update skip locked
    ),
    pruned as (
      delete from "queue_metrics" as m
      where (m.worker_id, m.report, m.queue, m.kind) in (select worker_id, report, queue, kind from over)
      returning 1
    )
    select count(*)::float8 as pruned,
      (select count(*) from "queue_workers")::float8 as workers from pruned
-- $1 = 1000
