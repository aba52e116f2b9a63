    with s as (
    delete from "queue_limits" as s
    where s.queue = $1 and s.kind = $2 and s.group_key = $3
    returning s.queue
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_key)
      select $4::text, statement_timestamp(), g.group_key from "queue_groups" as g
      where g.queue = $5
    )
    select queue from s
-- $1 = "mail"
-- $2 = ""
-- $3 = "*"
-- $4 = "mail"
-- $5 = "mail"
