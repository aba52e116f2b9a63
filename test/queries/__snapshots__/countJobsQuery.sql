    select j.queue, j.kind, count(*) filter (where j.worker_id is null and j.run_at <= statement_timestamp())::float8 as due,
      count(*) filter (where j.worker_id is null and j.run_at <= statement_timestamp() and j.group_key is not null)::float8 as grouped,
      count(*) filter (where j.worker_id is not null)::float8 as running,
      count(*) filter (where j.worker_id is null and j.run_at > statement_timestamp()
        and j.run_at < 'infinity')::float8 as scheduled,
      count(*) filter (where j.worker_id is null and j.run_at = 'infinity')::float8 as waiting,
      (date_part('epoch', statement_timestamp()) - date_part('epoch', min(j.run_at) filter (where j.worker_id is null and j.run_at <= statement_timestamp()))) * 1000 as oldest_due_ms,
      count(*) filter (where case when j.attempt < 2 then false
        else (j.attempt - (j.worker_id is not null)::int4) - least(nullif(jsonb_array_length(j.errors), 10),
          case when (j.errors -> -1 -> 'attempt')::int4 <= (j.attempt - (j.worker_id is not null)::int4)
            then (j.errors -> -1 -> 'attempt')::int4 else 0 end) >= 2
        end)::float8 as killers
    from "queue_jobs" as j
    group by j.queue, j.kind
