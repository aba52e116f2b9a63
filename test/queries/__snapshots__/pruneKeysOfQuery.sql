    with over as (
      select k.kind, k.key from "queue_keys" as k
      where k.queue = $1 and k.until <= statement_timestamp()
      order by k.until limit $2
      for update skip locked
    )
    delete from "queue_keys" as k
    where k.queue = $3 and (k.kind, k.key) in (select kind, key from over)
    returning k.key
-- $1 = "mail"
-- $2 = 1000
-- $3 = "mail"
