    with inserted as (
      insert into "queue_jobs"
        (queue, kind, max_attempts, payload, priority, run_at, created_at, unique_key, metadata)
      select 
        $1::text, $2::text, $3::int2, jsonb_build_object($4::text, n),
        ($5)::int2, ($6)::timestamptz, statement_timestamp(), null, $7::text::jsonb
      from (select 1 as n) as selected
      returning run_at
    )
    select enqueued,
        case when due then pg_notify($8::text, $9::text) is not null end as woke
      from (
        select count(*)::float8 as enqueued, bool_or(i.run_at <= statement_timestamp()) as due
        from inserted as i
      ) as counted
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 20
-- $4 = "mail"
-- $5 = 5
-- $6 = "2024-02-29T12:34:56.789Z"
-- $7 = "{\"text\":\"mail\"}"
-- $8 = "queue_wake_queue_jobs"
-- $9 = "\u0001mail"
