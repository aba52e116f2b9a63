    with i as materialized (select id, fence from rows from (unnest($1::text::int8[]), unnest($2::text::int8[])) as r(id, fence)),
    locked as materialized (
      select j.id from "queue_jobs" as j where j.queue = $3 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $4::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true for update skip locked
    )
    select j.id, j.id in (select id from locked) as locked
    from "queue_jobs" as j where j.queue = $5 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $6::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
-- $1 = "{42,43}"
-- $2 = "{3,1}"
-- $3 = "mail"
-- $4 = 42
-- $5 = "mail"
-- $6 = 42
