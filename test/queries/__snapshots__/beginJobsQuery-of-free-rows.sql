    with i as materialized (
      select id, fence from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c cross join set_config('lock_timeout', $4::text, true) as patience
        cross join rows from (unnest($5::text::int8[]), unnest($6::text::int8[])) as r(id, fence)
    ),
    free as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $7 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $8::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
      for no key update skip locked
    ),
    begun as (
    update "queue_jobs" as j set claimed_at = least(j.claimed_at, statement_timestamp())
    where j.queue = $9 and j.id = any(array(select id from free))
    returning j.id
    )
    select id, false as locked from begun
    union all
    select j.id, true from "queue_jobs" as j
    where j.queue = $10 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $11::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true and j.id not in (select id from begun)
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "100ms"
-- $5 = "{42}"
-- $6 = "{1}"
-- $7 = "mail"
-- $8 = 42
-- $9 = "mail"
-- $10 = "mail"
-- $11 = 42
