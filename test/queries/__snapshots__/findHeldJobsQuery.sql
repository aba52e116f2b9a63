    with i as materialized (select id, fence from rows from (unnest($1::text::int8[]), unnest($2::text::int8[])) as r(id, fence))
    select j.id, j.fence from "queue_jobs" as j where j.queue = $3 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $4::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
-- $1 = "{42}"
-- $2 = "{1}"
-- $3 = "mail"
-- $4 = 42
