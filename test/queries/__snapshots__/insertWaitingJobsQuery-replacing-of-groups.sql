    with numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence($1, 'id')::regclass as sequence) as s,
        (select * from (
      select $2::text as queue, $3::text as kind,
        $4::text::jsonb as payload, $5::int2 as priority,
        coalesce(to_timestamp($6::float8 / 1000),
          statement_timestamp() + $7::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $8::int2 as max_attempts,
        $9::text as unique_key, $10::text::jsonb as metadata, $11::text as group_key, $12::int2 as weight, $13::text as rule_key, 1 as place) as i order by place) as o
    ),
    put as (
      insert into "queue_jobs" as old
        (id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight, waiting_key) overriding system value
      select id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight, rule_key from numbered
      order by queue, kind, rule_key
      on conflict (queue, kind, waiting_key) where waiting_key is not null do update set payload = excluded.payload, priority = excluded.priority, max_attempts = excluded.max_attempts, metadata = excluded.metadata, group_key = excluded.group_key, weight = excluded.weight,
        run_at = excluded.run_at
      returning id, queue, kind, waiting_key, run_at, group_key
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from put as g
        where g.group_key is not null
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select n.place, i.id, i.id = n.id as is_new, null as woke
    from put as i
    join numbered as n on n.queue = i.queue and n.kind = i.kind and n.rule_key = i.waiting_key
-- $1 = "\"queue_jobs\""
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "{\"text\":\"mail\"}"
-- $5 = 5
-- $6 = null
-- $7 = 0
-- $8 = 20
-- $9 = null
-- $10 = "{\"text\":\"mail\"}"
-- $11 = "mail"
-- $12 = 3
-- $13 = "mail"
