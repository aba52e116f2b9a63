    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata)
    values ($1, $2, $3::text::jsonb, $4, statement_timestamp(), statement_timestamp(),
      $5, $6, $7::text::jsonb)
    returning id
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "{\"text\":\"mail\"}"
-- $4 = 5
-- $5 = 20
-- $6 = null
-- $7 = "{\"text\":\"mail\"}"
