    with locked as materialized (
      select m.name from "queue_mailboxes" as m where m.job_id = $1::int8 and m.queue = $2 and m.name = $3
      for no key update skip locked
    )
    select (select count(*) from locked)::int4 as locked, count(*)::int4 as found
    from "queue_mailboxes" as m where m.job_id = $4::int8 and m.queue = $5 and m.name = $6
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 42
-- $5 = "mail"
-- $6 = "mail"
