    select j.queue, j.kind, (count(*) filter (where j.worker_id is null and j.run_at <= statement_timestamp()))::float8 as due, (count(*) filter (where j.worker_id is not null))::float8 as running,
      (count(*) filter (where j.worker_id is null and j.run_at > statement_timestamp() and j.run_at < 'infinity'))::float8 as scheduled,
      (count(*) filter (where j.worker_id is null and j.run_at = 'infinity'))::float8 as waiting,
      date_part('epoch', (min(j.run_at) filter (where j.worker_id is null and j.run_at <= statement_timestamp()))) * 1000 as oldest_due_at
    from "queue_jobs" as j where true and j.queue in (
        select jsonb_array_elements_text($1::text::jsonb))
    group by j.queue, j.kind order by j.queue, j.kind
-- $1 = "[\"mail\"]"
