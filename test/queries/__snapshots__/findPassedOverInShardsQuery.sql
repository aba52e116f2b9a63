    select j.queue, j.priority,
      count(*) filter (where (j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = 'ClaimRefusedError'))::float8 as parked,
      min(j.id) filter (where (j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = 'ClaimRefusedError')) as parked_id,
      (date_part('epoch', statement_timestamp()) - date_part('epoch', min(j.run_at) filter (where j.worker_id is null and j.group_key is null and j.run_at <= statement_timestamp()))) * 1000 as due_ms,
      max(j.run_at) filter (where j.worker_id is not null and j.group_key is null) > min(j.run_at) filter (where j.worker_id is null and j.group_key is null and j.run_at <= statement_timestamp()) + interval '1 minute' as overtaken,
      coalesce(bool_or(j.worker_id is not null and j.group_key is null), false) as served
    from "queue_jobs" as j
    where j.run_at = 'infinity' or j.run_at <= statement_timestamp()
    group by j.queue, j.priority
    order by j.queue, j.priority limit $1
-- $1 = 1000
