    with held as materialized (
      select j.id from "queue_jobs" as j
      where j.id = any(array(select unnest($1::text::int8[]))) and j.queue = $2 and j.kind = $3 and j.group_key = $4 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $5 and j.created_at >= $6::timestamptz and j.created_at < $7::timestamptz and j.payload @> $8::text::jsonb and j.worker_id is not null and j.cancel_reason is null
      order by j.id
      for no key update skip locked
    )
    update "queue_jobs" as j set cancel_reason = $9::text
    where j.queue = $10 and j.id = any(array(select id from held))
    returning j.id
-- $1 = "{42}"
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "due"
-- $6 = "2024-02-29T12:34:56.789Z"
-- $7 = "2024-02-29T12:34:56.789Z"
-- $8 = "{\"text\":\"mail\"}"
-- $9 = "mail"
-- $10 = "mail"
