    select coalesce(jsonb_agg(j.id), '[]') as ids from "queue_jobs" as j
    where j.id = any(array(select unnest($1::text::int8[])))
-- $1 = "{42,43}"
