    with wanted as materialized (
      select i.*, $1::text || i.rule_key as waiting_key
      from (
      select $2::text as queue, $3::text as kind, r.element as payload,
        $4::int2 as priority,
        coalesce(to_timestamp($5::float8 / 1000), statement_timestamp() + $6::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $7::int2 as max_attempts,
        $8::text as unique_key,
        $9::text::jsonb as metadata, $10::text as rule_key, r.place from (
        select r.element, r.place as place
        from jsonb_array_elements($11::text::jsonb)
          with ordinality as r(element, place)) as r) as i
    ),
    slots as (
      insert into "queue_keys" as k (queue, kind, key, until)
      select w.queue, w.kind, w.rule_key,
        greatest(w.run_at, statement_timestamp()) + $12::float8 * interval '1 millisecond'
      from wanted as w order by w.queue, w.kind, w.rule_key
      on conflict (queue, kind, key) do update set until = case
        when (k.until at time zone 'UTC' + $13::float8 * interval '1 millisecond') <= excluded.until at time zone 'UTC' then excluded.until else (k.until at time zone 'UTC' + $14::float8 * interval '1 millisecond') at time zone 'UTC' end
      where k.until = (
          select s.until from "queue_keys" as s
          where s.queue = excluded.queue and s.kind = excluded.kind and s.key = excluded.key)
        and not exists (
          select from "queue_jobs" as j
          where j.queue = $15::text and j.kind = excluded.kind
            and j.waiting_key = $16::text || excluded.key)
      returning k.queue, k.kind, k.key, k.until
    ),
    placed as materialized (
      select w.*, t.until from wanted as w
      left join slots as t on t.queue = w.queue and t.kind = w.kind and t.key = w.rule_key
    ),
    numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence($17, 'id')::regclass as sequence) as s, (
        select w.*, greatest(w.run_at, w.until - $18::float8 * interval '1 millisecond') as due_at
        from placed as w where w.until is not null order by w.place) as o
    ),
    put as (
      insert into "queue_jobs" as old
        (id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, waiting_key) overriding system value
      select id, queue, kind, payload, priority, due_at, created_at, max_attempts, unique_key, metadata, waiting_key from numbered
      order by queue, kind, waiting_key
      on conflict (queue, kind, waiting_key) where waiting_key is not null do update set fence = old.fence + 1,
        payload = excluded.payload, priority = excluded.priority, max_attempts = excluded.max_attempts, metadata = excluded.metadata
      returning id, queue, kind, waiting_key, run_at
    ),
    replaced as (
      update "queue_jobs" as j set fence = j.fence + 1, payload = w.payload, priority = w.priority, max_attempts = w.max_attempts, metadata = w.metadata
      from placed as w
      where j.queue = $19::text and j.kind = w.kind and j.waiting_key = w.waiting_key
        and j.queue = w.queue and w.until is null
      returning j.id, w.place, j.queue, j.run_at
    )
    select n.place, i.id, i.id = n.id as is_new, null as woke
    from put as i
    join numbered as n on n.queue = i.queue and n.kind = i.kind and n.waiting_key = i.waiting_key
    union all
    select i.place, i.id, false, null as woke from replaced as i
-- $1 = "throttle:"
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
-- $12 = 60000
-- $13 = 60000
-- $14 = 60000
-- $15 = "mail"
-- $16 = "throttle:"
-- $17 = "\"queue_jobs\""
-- $18 = 60000
-- $19 = "mail"
