    with wanted as materialized (
      select * from (
      select r.queue as queue, r.kind as kind, coalesce(r.payload, 'null'::jsonb) as payload,
        r.priority as priority,
        coalesce(to_timestamp(r.run_at_ms / 1000), statement_timestamp() + r.delay_ms * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, r.max_attempts as max_attempts,
        $1::text as unique_key,
        r.metadata as metadata, r.group_key as group_key, r.weight as weight, r.rule_key as rule_key, r.place from (
        select r.payload, r.queue, r.kind, r.priority, r.delay_ms, r.run_at_ms, r.max_attempts, r.metadata, r.group_key, r.weight, r.rule_key, r.place as place
        from rows from (jsonb_to_recordset($2::text::jsonb) as (payload jsonb, queue text, kind text, priority int2, delay_ms float8, run_at_ms float8, max_attempts int2, metadata jsonb, group_key text, weight int2, rule_key text))
          with ordinality as r(payload, queue, kind, priority, delay_ms, run_at_ms, max_attempts, metadata, group_key, weight, rule_key, place)) as r) as i
    ),
    taken as (
      insert into "queue_keys" as k (queue, kind, key, until)
      select w.queue, w.kind, w.rule_key, statement_timestamp() + $3::float8 * interval '1 millisecond'
      from wanted as w
      where not exists (
        select from "queue_keys" as k
        where k.queue = w.queue and k.kind = w.kind and k.key = w.rule_key and k.until > statement_timestamp())
      order by w.queue, w.kind, w.rule_key
      on conflict (queue, kind, key) do update set until = excluded.until
      where (k.until at time zone 'UTC' + $4::float8 * interval '1 millisecond') <= excluded.until at time zone 'UTC'
      returning k.queue, k.kind, k.key
    ),
    accepted as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence($5, 'id')::regclass as sequence) as s, (
        select w.* from wanted as w
        where ((w.queue, w.kind, w.rule_key) in (select queue, kind, key from taken)) is true
        order by w.place) as o
    ),
    inserted as (
      insert into "queue_jobs" (id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight) overriding system value
      select id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight from accepted order by place
      returning id, queue, run_at, group_key
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
    select a.place, i.id, true as is_new, case when i.run_at <= statement_timestamp() and $6::text::jsonb @> to_jsonb(i.queue) then pg_notify($7::text, i.queue) is not null end as woke
    from inserted as i join accepted as a on a.id = i.id
-- $1 = null
-- $2 = "[{\"payload\":{\"text\":\"mail\"},\"queue\":\"mail\",\"kind\":\"mail\",\"priority\":5,\"delay_ms\":0,\"run_at_ms\":null,\"max_attempts\":20,\"metadata\":{\"text\":\"mail\"},\"group_key\":\"mail\",\"weight\":3,\"rule_key\":\"mail\"},{\"payload\":null,\"queue\":\"mail 2\",\"kind\":\"mail 2\",\"priority\":1,\"delay_ms\":1000,\"run_at_ms\":1709210096789,\"max_attempts\":1,\"metadata\":{},\"group_key\":null,\"weight\":1,\"rule_key\":\"mail 2\"}]"
-- $3 = 60000
-- $4 = 60000
-- $5 = "\"queue_jobs\""
-- $6 = "[\"mail\"]"
-- $7 = "queue_wake_queue_jobs"
