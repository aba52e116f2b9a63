    with i as materialized (select id, fence from (
        select r.id, r.fence, 0 + r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (id int8, fence int4)) with ordinality
          as r(id, fence, place)) as r)
    select j.id, j.fence from "queue_jobs" as j where j.queue = $2 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $3::int8 and (j.id, j.fence) in (select id, fence from i)
-- $1 = "[{\"id\":42,\"fence\":1}]"
-- $2 = "mail"
-- $3 = 42
