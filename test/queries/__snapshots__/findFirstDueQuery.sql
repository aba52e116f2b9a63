    select j.id, j.kind, (date_part('epoch', statement_timestamp()) - date_part('epoch', j.run_at)) * 1000 as due_ms
    from "queue_jobs" as j
    where j.queue = $1 and j.priority = $2::int2 and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
      and j.run_at <= statement_timestamp() and j.worker_id is null
    order by j.run_at, j.id limit 1
-- $1 = "mail"
-- $2 = 5
