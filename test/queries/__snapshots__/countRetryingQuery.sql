    select j.queue, j.kind, count(*)::float8 as read, (count(*) filter (where (j.errors <> '[]'::jsonb and j.attempt > 0 and j.worker_id is null and j.run_at < 'infinity')))::float8 as jobs
    from (
          select j.* from "queue_jobs" as j where j.errors <> '[]'::jsonb limit $1
        ) as j
    group by j.queue, j.kind order by jobs desc, j.queue, j.kind
-- $1 = 10000
