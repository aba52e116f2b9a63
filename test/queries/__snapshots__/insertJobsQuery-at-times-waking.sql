    with inserted as (
    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata)
    select queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata from (
      select $1::text as queue, $2::text as kind, coalesce(r.payload, 'null'::jsonb) as payload,
        $3::int2 as priority,
        coalesce(to_timestamp(r.run_at_ms / 1000), statement_timestamp() + $4::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $5::int2 as max_attempts,
        $6::text as unique_key,
        $7::text::jsonb as metadata, r.place from (
        select r.payload, r.run_at_ms, r.place as place
        from rows from (jsonb_to_recordset($8::text::jsonb) as (payload jsonb, run_at_ms float8))
          with ordinality as r(payload, run_at_ms, place)) as r) as i order by place
    returning id, queue, run_at)
    select json_agg(i.id)::text as ids,
      case when bool_or(i.run_at <= statement_timestamp()) then pg_notify($9::text, $10::text) is not null end as woke from inserted as i
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 5
-- $4 = 0
-- $5 = 20
-- $6 = null
-- $7 = "{\"text\":\"mail\"}"
-- $8 = "[{\"payload\":{\"text\":\"mail\"},\"run_at_ms\":null},{\"payload\":{\"text\":\"mail\"},\"run_at_ms\":1709210096789}]"
-- $9 = "queue_wake_queue_jobs"
-- $10 = "\u0001mail"
