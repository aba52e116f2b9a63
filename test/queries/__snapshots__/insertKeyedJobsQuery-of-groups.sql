    with numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence($1, 'id')::regclass as sequence) as s,
        (select * from (
      select $2::text as queue, $3::text as kind, coalesce(r.payload, 'null'::jsonb) as payload,
        $4::int2 as priority,
        coalesce(to_timestamp($5::float8 / 1000), statement_timestamp() + $6::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $7::int2 as max_attempts,
        r.unique_key as unique_key,
        $8::text::jsonb as metadata, r.group_key as group_key, r.weight as weight, r.place from (
        select r.payload, r.unique_key, r.group_key, r.weight, r.place as place
        from rows from (jsonb_to_recordset($9::text::jsonb) as (payload jsonb, unique_key text, group_key text, weight int2))
          with ordinality as r(payload, unique_key, group_key, weight, place)) as r) as i order by place) as o
    ),
    inserted as (
      insert into "queue_jobs" (id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight) overriding system value
      select id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight from numbered
      order by queue, kind, unique_key, place
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing
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
    select n.place, i.id, null as woke
    from inserted as i join numbered as n on n.id = i.id
-- $1 = "\"queue_jobs\""
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 5
-- $5 = null
-- $6 = 0
-- $7 = 20
-- $8 = "{\"text\":\"mail\"}"
-- $9 = "[{\"payload\":{\"text\":\"mail\"},\"unique_key\":\"mail\",\"group_key\":\"mail\",\"weight\":3},{\"payload\":{\"text\":\"mail\"},\"unique_key\":null,\"group_key\":null,\"weight\":1}]"
