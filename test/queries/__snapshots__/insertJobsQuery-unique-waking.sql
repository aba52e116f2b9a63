    with inserted as (
    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata)
    values ($1, $2, $3::text::jsonb, $4, statement_timestamp(), statement_timestamp(),
      $5, $6, $7::text::jsonb)
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing
    returning id, queue, run_at)
    select i.id, case when i.run_at <= statement_timestamp() then pg_notify($8::text, $9::text) is not null end as woke from inserted as i
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "{\"text\":\"mail\"}"
-- $4 = 5
-- $5 = 20
-- $6 = "mail"
-- $7 = "{\"text\":\"mail\"}"
-- $8 = "queue_wake_queue_jobs"
-- $9 = "\u0001mail"
