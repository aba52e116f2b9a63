    select f.queue, count(*)::float8 as jobs, max(f.id)::float8 as until from (
      select j.queue, j.id from "queue_jobs" as j
      where j.queue = $1 and j.id <= $2::int8 and j.cancel_reason is null and j.kind = $3 and j.group_key = $4 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $5 and j.created_at >= $6::timestamptz and j.created_at < $7::timestamptz and j.payload @> $8::text::jsonb order by j.id limit $9::int8
    ) as f group by f.queue order by f.queue
-- $1 = "mail"
-- $2 = 42
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "due"
-- $6 = "2024-02-29T12:34:56.789Z"
-- $7 = "2024-02-29T12:34:56.789Z"
-- $8 = "{\"text\":\"mail\"}"
-- $9 = 10
