    with free as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = any(array(select unnest($2::text::int8[])))
        and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
      for no key update skip locked
    ),
    claimed as (
    update "queue_jobs" as j
    set worker_id = $3::int8, claimed_at = statement_timestamp(), attempt = j.attempt + 1, fence = j.fence + 1, waiting_key = null
    where j.queue = $4 and j.id = any(array(select id from free))
    returning j.id
    )
    select id from claimed
-- $1 = "mail"
-- $2 = "{42,43}"
-- $3 = 42
-- $4 = "mail"
