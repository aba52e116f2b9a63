select coalesce(max(r.job_id), 0)::float8 as last from "queue_results" as r
