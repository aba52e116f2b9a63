    with i as materialized (
      select id, fence
      from rows from (unnest($1::text::int8[]), unnest($2::text::int8[])) as r(id, fence) cross join set_config('lock_timeout', $3::text, true) as patience
    ),
    free as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $4 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $5::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
      for no key update skip locked
    ),
    released as (
    update "queue_jobs" as j
    set worker_id = null, claimed_at = null, attempt = j.attempt - 1
    where j.queue = $6 and j.id = any(array(select id from free))
    returning j.id
    )
    select id, false as locked from released
    union all
    select j.id, true from "queue_jobs" as j
    where j.queue = $7 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $8::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true and j.id not in (select id from released)
-- $1 = "{42}"
-- $2 = "{7}"
-- $3 = "100ms"
-- $4 = "mail"
-- $5 = 42
-- $6 = "mail"
-- $7 = "mail"
-- $8 = 42
