    with inserted as (
      insert into "queue_jobs"
        (queue, kind, max_attempts, payload, priority, run_at, created_at, unique_key, metadata, group_key, weight)
      select 
        $1::text, $2::text, $3::int2, jsonb_build_object($4::text, n),
        ($5)::int2, ($6)::timestamptz, statement_timestamp(), null, $7::text::jsonb, coalesce(nullif((n::text)::text, ''), $8::text), ($9)::int2
      from (select 1 as n) as selected
      returning queue, group_key, run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from inserted as g
        where g.group_key is not null and g.run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select count(*)::float8 as enqueued, null as woke from inserted
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 20
-- $4 = "mail"
-- $5 = 5
-- $6 = "2024-02-29T12:34:56.789Z"
-- $7 = "{\"text\":\"mail\"}"
-- $8 = "-"
-- $9 = 3
