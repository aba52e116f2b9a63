    with inserted as (
    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, batch_id, blockers)
    select queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, batch_id, blockers from (
      select r.queue as queue, r.kind as kind, coalesce(r.payload, 'null'::jsonb) as payload,
        r.priority as priority,
        case when $1::int4 > 0 then 'infinity' else coalesce(to_timestamp(r.run_at_ms / 1000), statement_timestamp() + r.delay_ms * interval '1 millisecond') end as run_at,
        statement_timestamp() as created_at, r.max_attempts as max_attempts,
        $2::text as unique_key,
        r.metadata as metadata, r.batch_id as batch_id, $3::int4 as blockers, r.place from (
        select r.payload, r.queue, r.kind, r.priority, r.delay_ms, r.run_at_ms, r.max_attempts, r.metadata, r.batch_id, r.place as place
        from rows from (jsonb_to_recordset($4::text::jsonb) as (payload jsonb, queue text, kind text, priority int2, delay_ms float8, run_at_ms float8, max_attempts int2, metadata jsonb, batch_id int8))
          with ordinality as r(payload, queue, kind, priority, delay_ms, run_at_ms, max_attempts, metadata, batch_id, place)) as r) as i order by place
    returning id, queue, run_at)
    select i.id, case when i.run_at <= statement_timestamp() and $5::text::jsonb @> to_jsonb(i.queue) then pg_notify($6::text, i.queue) is not null end as woke from inserted as i
-- $1 = null
-- $2 = null
-- $3 = null
-- $4 = "[{\"payload\":{\"text\":\"mail\"},\"queue\":\"mail\",\"kind\":\"mail\",\"priority\":5,\"delay_ms\":0,\"run_at_ms\":null,\"max_attempts\":20,\"metadata\":{\"text\":\"mail\"},\"batch_id\":42},{\"payload\":null,\"queue\":\"mail 2\",\"kind\":\"mail 2\",\"priority\":1,\"delay_ms\":1000,\"run_at_ms\":1709210096789,\"max_attempts\":1,\"metadata\":{},\"batch_id\":null}]"
-- $5 = "[\"mail\"]"
-- $6 = "queue_wake_queue_jobs"
