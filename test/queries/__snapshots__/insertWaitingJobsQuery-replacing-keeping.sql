    with numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence($1, 'id')::regclass as sequence) as s,
        (select * from (
      select $2::text as queue, $3::text as kind, r.element as payload,
        $4::int2 as priority,
        coalesce(to_timestamp($5::float8 / 1000), statement_timestamp() + $6::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $7::int2 as max_attempts,
        $8::text as unique_key,
        $9::text::jsonb as metadata, $10::text as rule_key, r.place from (
        select r.element, r.place as place
        from jsonb_array_elements($11::text::jsonb)
          with ordinality as r(element, place)) as r) as i order by place) as o
    ),
    put as (
      insert into "queue_jobs" as old
        (id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, waiting_key) overriding system value
      select id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, rule_key from numbered
      order by queue, kind, rule_key
      on conflict (queue, kind, waiting_key) where waiting_key is not null do update set fence = old.fence + 1,
        payload = excluded.payload, priority = excluded.priority, max_attempts = excluded.max_attempts, metadata = excluded.metadata
      returning id, queue, kind, waiting_key, run_at
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
-- $11 = "[{\"text\":\"mail\"}]"
