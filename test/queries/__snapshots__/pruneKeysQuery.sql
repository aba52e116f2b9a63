    with over as (
      select k.queue, k.kind, k.key from "queue_keys" as k
      where k.until <= statement_timestamp()
      order by k.until limit $1
      for update skip locked
    ),
    pruned as (
      delete from "queue_keys" as k
      where (k.queue, k.kind, k.key) in (select queue, kind, key from over)
      returning 1
    )
    select count(*)::float8 as pruned,
      (select count(*) from "queue_workers")::float8 as workers from pruned
-- $1 = 1000
