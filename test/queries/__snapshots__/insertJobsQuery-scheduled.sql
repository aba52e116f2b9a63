    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata)
    values ($1, $2, $3::text::jsonb, $4, statement_timestamp() + $5::float8 * interval '1 millisecond', statement_timestamp(),
      $6, $7, $8::text::jsonb)
    returning id
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "{\"text\":\"mail\"}"
-- $4 = 5
-- $5 = 1000
-- $6 = 20
-- $7 = null
-- $8 = "{\"text\":\"mail\"}"
