    with i as materialized (
      select id, fence from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c cross join set_config('lock_timeout', $4::text, true) as patience cross join set_config('synchronous_commit', 'off', true) as haste
        cross join rows from (unnest($5::text::int8[]), unnest($6::text::int8[])) as r(id, fence)
    ),
    begun as (
    update "queue_jobs" as j set claimed_at = least(j.claimed_at, statement_timestamp())
    where j.queue = $7 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $8::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
    returning j.id
    )
    select id from i where id not in (select id from begun)
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "100ms"
-- $5 = "{42}"
-- $6 = "{1}"
-- $7 = "mail"
-- $8 = 42
