    with i as materialized (select id, fence from rows from (unnest($1::text::int8[]), unnest($2::text::int8[])) as r(id, fence))
    update "queue_jobs" as j
    set worker_id = null, claimed_at = null, attempt = j.attempt - (j.claimed_at is null)::int4
    where j.queue = $3 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $4::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
    returning j.id
-- $1 = "{42}"
-- $2 = "{7}"
-- $3 = "mail"
-- $4 = 42
