    with i as materialized (
      select id, fence from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
        cross join rows from (unnest($4::text::int8[]), unnest($5::text::int8[])) as r(id, fence)
    ),
    begun as (
    update "queue_jobs" as j set claimed_at = least(j.claimed_at, statement_timestamp())
    where j.queue = $6 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $7::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
    returning j.id
    )
    select id from i where id not in (select id from begun)
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "{42}"
-- $5 = "{1}"
-- $6 = "mail"
-- $7 = 42
