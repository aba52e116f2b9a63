    with i as materialized (
      select jsonb_build_object($1::text, n) as payload, ($2)::int2 as priority,
        ($3)::timestamptz as run_at, (n::text)::text as unique_key,
        $4::text::jsonb as metadata, coalesce(null, $5::text) as group_key, (1)::int2 as weight
      from (select 1 as n) as selected
    ),
    inserted as (
      insert into "queue_jobs"
        (queue, kind, max_attempts, created_at, payload, priority, run_at, unique_key, metadata, group_key, weight)
      select $6::text, $7::text, $8::int2, statement_timestamp(), i.*
      from i order by unique_key
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
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
    select (select count(*) from i)::float8 as selected, e.* from (select count(*)::float8 as enqueued, null as woke from inserted) as e
-- $1 = "mail"
-- $2 = 5
-- $3 = "2024-02-29T12:34:56.789Z"
-- $4 = "{\"text\":\"mail\"}"
-- $5 = "-"
-- $6 = "mail"
-- $7 = "mail"
-- $8 = 20
