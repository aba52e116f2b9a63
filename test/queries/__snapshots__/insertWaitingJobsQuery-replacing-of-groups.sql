    with numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence($1, 'id')::regclass as sequence) as s,
        (select * from (
      select $2::text as queue, $3::text as kind, r.element as payload,
        $4::int2 as priority,
        coalesce(to_timestamp($5::float8 / 1000), statement_timestamp() + $6::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $7::int2 as max_attempts,
        $8::text as unique_key,
        $9::text::jsonb as metadata, $10::text as group_key, $11::int2 as weight, $12::text as rule_key, r.place from (
        select r.element, r.place as place
        from jsonb_array_elements($13::text::jsonb)
          with ordinality as r(element, place)) as r) as i order by place) as o
    ),
    put as (
      insert into "queue_jobs" as old
        (id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight, waiting_key) overriding system value
      select id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight, rule_key from numbered
      order by queue, kind, rule_key
      on conflict (queue, kind, waiting_key) where waiting_key is not null do update set fence = old.fence + 1,
        payload = excluded.payload, priority = excluded.priority, max_attempts = excluded.max_attempts, metadata = excluded.metadata, group_key = excluded.group_key, weight = excluded.weight,
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
        where g.group_key is not null and g.run_at < 'infinity'
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
-- $4 = 5
-- $5 = null
-- $6 = 0
-- $7 = 20
-- $8 = null
-- $9 = "{\"text\":\"mail\"}"
-- $10 = "mail"
-- $11 = 3
-- $12 = "mail"
-- $13 = "[{\"text\":\"mail\"}]"
