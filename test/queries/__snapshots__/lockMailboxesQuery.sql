    with locked as materialized (
      select m.name from "queue_mailboxes" as m where m.job_id = $1::int8 and m.queue = $2 and m.received > 0
      for no key update skip locked
    )
    select (select count(*) from locked)::int4 as locked, count(*)::int4 as found
    from "queue_mailboxes" as m where m.job_id = $3::int8 and m.queue = $4 and m.received > 0
-- $1 = 42
-- $2 = "mail"
-- $3 = 42
-- $4 = "mail"
