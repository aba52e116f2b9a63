    with held as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id > $2::int8
        and j.id <= $3::int8 and j.id = any(array(select unnest($4::text::int8[]))) and j.worker_id is not null and j.cancel_reason is null
      order by j.id limit $5::int8
      for no key update skip locked
    )
    update "queue_jobs" as j set cancel_reason = $6::text
    where j.queue = $7 and j.id = any(array(select id from held))
    returning j.id
-- $1 = "mail"
-- $2 = 42
-- $3 = 43
-- $4 = "{42}"
-- $5 = 10
-- $6 = "mail"
-- $7 = "mail"
