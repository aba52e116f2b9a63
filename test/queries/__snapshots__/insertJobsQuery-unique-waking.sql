    with inserted as (
    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata)
    select queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata from (
      select $1::text as queue, $2::text as kind,
        $3::text::jsonb as payload, $4::int2 as priority,
        coalesce(to_timestamp($5::float8 / 1000),
          statement_timestamp() + $6::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $7::int2 as max_attempts,
        $8::text as unique_key, $9::text::jsonb as metadata, 1 as place) as i order by place
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing
    returning id, queue, run_at)
    select i.id, case when i.run_at <= statement_timestamp() then pg_notify($10::text, $11::text) is not null end as woke from inserted as i
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "{\"text\":\"mail\"}"
-- $4 = 5
-- $5 = null
-- $6 = 0
-- $7 = 20
-- $8 = "mail"
-- $9 = "{\"text\":\"mail\"}"
-- $10 = "queue_wake_queue_jobs"
-- $11 = "\u0001mail"
