    with wanted as materialized (
      select * from (
      select $1::text as queue, $2::text as kind, r.element as payload,
        $3::int2 as priority,
        coalesce(to_timestamp($4::float8 / 1000), statement_timestamp() + $5::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $6::int2 as max_attempts,
        $7::text as unique_key,
        $8::text::jsonb as metadata, $9::text as rule_key, r.place from (
        select r.element, r.place as place
        from jsonb_array_elements($10::text::jsonb)
          with ordinality as r(element, place)) as r) as i
    ),
    taken as (
      insert into "queue_keys" as k (queue, kind, key, until)
      select w.queue, w.kind, w.rule_key, statement_timestamp() + $11::float8 * interval '1 millisecond'
      from wanted as w
      where (w.kind, w.rule_key) not in (
        select k.kind, k.key from "queue_keys" as k
        where k.queue = $12 and k.kind = $13
          and k.key = $14 and k.until > statement_timestamp())
      order by w.queue, w.kind, w.rule_key
      on conflict (queue, kind, key) do update set until = excluded.until
      where (k.until at time zone 'UTC' + $15::float8 * interval '1 millisecond') <= excluded.until at time zone 'UTC'
      returning k.queue, k.kind, k.key
    ),
    accepted as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence($16, 'id')::regclass as sequence) as s, (
        select w.* from wanted as w
        where ((w.queue, w.kind, w.rule_key) in (select queue, kind, key from taken)) is true
        order by w.place) as o
    ),
    inserted as (
      insert into "queue_jobs" (id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata) overriding system value
      select id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata from accepted order by place
      returning id, queue, run_at
    )
    select a.place, i.id, true as is_new, null as woke
    from inserted as i join accepted as a on a.id = i.id
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 5
-- $4 = null
-- $5 = 0
-- $6 = 20
-- $7 = null
-- $8 = "{\"text\":\"mail\"}"
-- $9 = "mail"
-- $10 = "[{\"text\":\"mail\"}]"
-- $11 = 60000
-- $12 = "mail"
-- $13 = "mail"
-- $14 = "mail"
-- $15 = 60000
-- $16 = "\"queue_jobs\""
