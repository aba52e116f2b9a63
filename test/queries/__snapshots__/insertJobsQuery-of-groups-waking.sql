    with inserted as (
    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight)
    select queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight from (
      select r.queue as queue, r.kind as kind, coalesce(r.payload, 'null'::jsonb) as payload,
        r.priority as priority,
        coalesce(to_timestamp(r.run_at_ms / 1000), statement_timestamp() + r.delay_ms * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, r.max_attempts as max_attempts,
        $1::text as unique_key,
        r.metadata as metadata, r.group_key as group_key, r.weight as weight, r.place from (
        select r.payload, r.queue, r.kind, r.priority, r.delay_ms, r.run_at_ms, r.max_attempts, r.metadata, r.group_key, r.weight, r.place as place
        from rows from (jsonb_to_recordset($2::text::jsonb) as (payload jsonb, queue text, kind text, priority int2, delay_ms float8, run_at_ms float8, max_attempts int2, metadata jsonb, group_key text, weight int2))
          with ordinality as r(payload, queue, kind, priority, delay_ms, run_at_ms, max_attempts, metadata, group_key, weight, place)) as r) as i order by place
    returning id, queue, run_at, group_key),
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
    select i.id, case when i.run_at <= statement_timestamp() and $3::text::jsonb @> to_jsonb(i.queue) then pg_notify($4::text, i.queue) is not null end as woke from inserted as i
-- $1 = null
-- $2 = "[{\"payload\":{\"text\":\"mail\"},\"queue\":\"mail\",\"kind\":\"mail\",\"priority\":5,\"delay_ms\":0,\"run_at_ms\":null,\"max_attempts\":20,\"metadata\":{\"text\":\"mail\"},\"group_key\":\"mail\",\"weight\":3},{\"payload\":null,\"queue\":\"mail 2\",\"kind\":\"mail 2\",\"priority\":1,\"delay_ms\":1000,\"run_at_ms\":1709210096789,\"max_attempts\":1,\"metadata\":{},\"group_key\":null,\"weight\":1}]"
-- $3 = "[\"mail\"]"
-- $4 = "queue_wake_queue_jobs"
