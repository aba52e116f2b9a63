    select f.queue, string_agg(f.id::text, ', ' order by f.id) as ids from (
      select j.queue, j.id from "queue_jobs" as j
      where j.id > $1::int8 and j.id <= $2::int8 and j.cancel_reason is null and j.id = any(array(select unnest($3::text::int8[]))) and j.queue = $4 and j.kind = $5 and j.group_key = $6 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $7 and j.created_at >= $8::timestamptz and j.created_at < $9::timestamptz and j.payload @> $10::text::jsonb
      order by j.id limit $11::int8
    ) as f group by f.queue order by f.queue
-- $1 = 42
-- $2 = 43
-- $3 = "{42}"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "due"
-- $8 = "2024-02-29T12:34:56.789Z"
-- $9 = "2024-02-29T12:34:56.789Z"
-- $10 = "{\"text\":\"mail\"}"
-- $11 = 10
