    with i as materialized (
      select id, fence, attempt,
        coalesce(statement_timestamp() + delay_ms * interval '1 millisecond', 'infinity') as run_at
      from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c cross join set_config('lock_timeout', $4::text, true) as patience cross join rows from (unnest($5::text::int8[]), unnest($6::text::int8[]),
        unnest($7::text::int2[]),
        unnest($8::text::float8[])
      ) as r(id, fence, attempt, delay_ms)
    ),
    free as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $9 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $10::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
      for no key update skip locked
    ),
    parked as (
    update "queue_jobs" as j
    set worker_id = null, claimed_at = null, attempt = i.attempt, blockers = coalesce(j.blockers, 0), errors = case when j.errors -> -1 ->> 'name' = 'ClaimRefusedError' then j.errors - -1 else j.errors end,
      run_at = case when j.run_at > j.claimed_at or j.cancel_reason is not null
        then j.run_at else i.run_at end
    from i
    where j.queue = $11 and j.id = any(array(select id from free))
        and i.id = j.id and i.fence = j.fence
    returning j.id, j.cancel_reason
    )
    select id, cancel_reason, false as locked from parked
    union all
    select j.id, null, true from "queue_jobs" as j
    where j.queue = $12 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $13::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true and j.id not in (select id from parked)
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "100ms"
-- $5 = "{42,43}"
-- $6 = "{1,2}"
-- $7 = "{0,0}"
-- $8 = "{null,1000}"
-- $9 = "mail"
-- $10 = 42
-- $11 = "mail"
-- $12 = "mail"
-- $13 = 42
