    with held as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id > $2::int8
        and j.id <= $3::int8 and j.kind = $4 and j.group_key = $5 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $6 and j.created_at >= $7::timestamptz and j.created_at < $8::timestamptz and j.payload @> $9::text::jsonb and j.worker_id is not null and j.cancel_reason is null
      order by j.id limit $10::int8
      for no key update skip locked
    )
    update "queue_jobs" as j set cancel_reason = $11::text
    where j.queue = $12 and j.id = any(array(select id from held))
    returning j.id
-- $1 = "mail"
-- $2 = 42
-- $3 = 43
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "due"
-- $7 = "2024-02-29T12:34:56.789Z"
-- $8 = "2024-02-29T12:34:56.789Z"
-- $9 = "{\"text\":\"mail\"}"
-- $10 = 10
-- $11 = "mail"
-- $12 = "mail"
