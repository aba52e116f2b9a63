    with numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence($1, 'id')::regclass as sequence) as s,
        (select * from (
      select $2::text as queue, $3::text as kind, coalesce(r.payload, 'null'::jsonb) as payload,
        $4::int2 as priority,
        coalesce(to_timestamp(r.run_at_ms / 1000), statement_timestamp() + $5::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $6::int2 as max_attempts,
        r.unique_key as unique_key,
        $7::text::jsonb as metadata, r.place from (
        select r.payload, r.run_at_ms, r.unique_key, r.place as place
        from rows from (jsonb_to_recordset($8::text::jsonb) as (payload jsonb, run_at_ms float8, unique_key text))
          with ordinality as r(payload, run_at_ms, unique_key, place)) as r) as i order by place) as o
    ),
    inserted as (
      insert into "queue_jobs" (id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata) overriding system value
      select id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata from numbered
      order by queue, kind, unique_key, place
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning id, queue, run_at
    )
    select n.place, i.id, null as woke
    from inserted as i join numbered as n on n.id = i.id
-- $1 = "\"queue_jobs\""
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 5
-- $5 = 0
-- $6 = 20
-- $7 = "{\"text\":\"mail\"}"
-- $8 = "[{\"payload\":{\"text\":\"mail\"},\"run_at_ms\":null,\"unique_key\":\"mail\"},{\"payload\":{\"text\":\"mail\"},\"run_at_ms\":1709210096789,\"unique_key\":null}]"
