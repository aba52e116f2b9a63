    select j.queue, j.kind, count(*)::float8 as read, (count(*) filter (where (j.errors <> '[]'::jsonb and j.attempt > 0 and j.worker_id is null and j.run_at < 'infinity') and j.queue in (
        select jsonb_array_elements_text($1::text::jsonb))))::float8 as jobs
    from (
          select j.* from "queue_jobs" as j where j.errors <> '[]'::jsonb limit $2
        ) as j
    group by j.queue, j.kind order by jobs desc, j.queue, j.kind
-- $1 = "[\"mail\"]"
-- $2 = 10000
