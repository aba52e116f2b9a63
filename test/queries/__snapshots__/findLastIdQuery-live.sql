select coalesce(max(j.id), 0)::float8 as last from "queue_jobs" as j
