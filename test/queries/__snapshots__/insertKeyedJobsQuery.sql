    with i as (
      select queue, kind, coalesce(payload, 'null'::jsonb) as payload, priority,
        coalesce(to_timestamp(run_at_ms / 1000), statement_timestamp() + delay_ms * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, max_attempts, unique_key, metadata, place
      from (
        select r.queue, r.kind, r.payload, r.priority, r.delay_ms, r.run_at_ms, r.max_attempts, r.unique_key, r.metadata, 0 + r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (queue text, kind text, payload jsonb, priority int2, delay_ms float8, run_at_ms float8, max_attempts int2, unique_key text, metadata jsonb)) with ordinality
          as r(queue, kind, payload, priority, delay_ms, run_at_ms, max_attempts, unique_key, metadata, place)) as r),
    numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence($2, 'id')::regclass as sequence) as s,
        (select * from i order by place) as o
    ),
    inserted as (
      insert into "queue_jobs" (id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata) overriding system value
      select id, queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata from numbered order by queue, kind, unique_key, place
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning id
    )
    select n.place, inserted.id from inserted join numbered as n on n.id = inserted.id
-- $1 = "[{\"queue\":\"mail\",\"kind\":\"mail\",\"payload\":{\"text\":\"mail\"},\"priority\":5,\"delay_ms\":0,\"run_at_ms\":null,\"max_attempts\":20,\"unique_key\":\"mail\",\"metadata\":{\"text\":\"mail\"}},{\"queue\":\"mail\",\"kind\":\"mail\",\"payload\":{\"text\":\"mail\"},\"priority\":5,\"delay_ms\":0,\"run_at_ms\":1709210096789,\"max_attempts\":20,\"unique_key\":null,\"metadata\":{\"text\":\"mail\"}}]"
-- $2 = "\"queue_jobs\""
