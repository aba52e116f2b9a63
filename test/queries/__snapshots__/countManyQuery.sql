    select count(*)::float8 as jobs, coalesce(max(r.job_id), 0)::float8 as until
    from "queue_results" as r where true and r.state = 'discarded' and r.job_id = any(array(select unnest($1::text::int8[])))
-- $1 = "{42}"
