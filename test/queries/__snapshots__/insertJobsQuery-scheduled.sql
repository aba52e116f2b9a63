    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata)
    values ($1, $2, $3::text::jsonb, $4, coalesce(to_timestamp($5::float8 / 1000), statement_timestamp() + $6::float8 * interval '1 millisecond'), statement_timestamp(),
      $7, $8, $9::text::jsonb)
    returning id
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "{\"text\":\"mail\"}"
-- $4 = 5
-- $5 = null
-- $6 = 1000
-- $7 = 20
-- $8 = null
-- $9 = "{\"text\":\"mail\"}"
