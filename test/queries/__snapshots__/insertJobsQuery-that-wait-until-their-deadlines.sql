    with inserted as (
    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, batch_id, blockers)
    select queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, batch_id, blockers from (
      select r.queue as queue, r.kind as kind, coalesce(r.payload, 'null'::jsonb) as payload,
        r.priority as priority,
        case when r.blockers > 0 and r.delay_ms = 0 then 'infinity' else coalesce(to_timestamp(r.run_at_ms / 1000), statement_timestamp() + r.delay_ms * interval '1 millisecond') end as run_at,
        statement_timestamp() as created_at, r.max_attempts as max_attempts,
        $1::text as unique_key,
        r.metadata as metadata, $2::int8 as batch_id, r.blockers as blockers, r.place from (
        select r.payload, r.queue, r.kind, r.priority, r.delay_ms, r.run_at_ms, r.max_attempts, r.metadata, r.blockers, r.place as place
        from rows from (jsonb_to_recordset($3::text::jsonb) as (payload jsonb, queue text, kind text, priority int2, delay_ms float8, run_at_ms float8, max_attempts int2, metadata jsonb, blockers int4))
          with ordinality as r(payload, queue, kind, priority, delay_ms, run_at_ms, max_attempts, metadata, blockers, place)) as r) as i order by place
    returning id, queue, run_at)
    select i.id, case when i.run_at <= statement_timestamp() and $4::text::jsonb @> to_jsonb(i.queue) then pg_notify($5::text, i.queue) is not null end as woke from inserted as i
-- $1 = null
-- $2 = 42
-- $3 = "[{\"payload\":{\"text\":\"mail\"},\"queue\":\"mail\",\"kind\":\"mail\",\"priority\":5,\"delay_ms\":1000,\"run_at_ms\":null,\"max_attempts\":20,\"metadata\":{\"text\":\"mail\"},\"blockers\":2},{\"payload\":null,\"queue\":\"mail 2\",\"kind\":\"mail 2\",\"priority\":1,\"delay_ms\":0,\"run_at_ms\":1709210096789,\"max_attempts\":1,\"metadata\":{},\"blockers\":1}]"
-- $4 = "[\"mail\"]"
-- $5 = "queue_wake_queue_jobs"
