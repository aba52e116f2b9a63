    with known as materialized (
      select s.output from "queue_steps" as s where s.job_id = $1::int8 and s.queue = $2 and s.name = $3
        and s.ended_at is not null and s.fence = $4::int8
    ),
    held as materialized (
      select j.id, j.queue, j.fence from "queue_jobs" as j
      where j.queue = $5 and j.id = $6::int8
        and j.worker_id is not distinct from $7::int8 and j.fence = $8::int8
        and not exists (select from "queue_steps" as s where s.job_id = $9::int8 and s.queue = $10 and s.name = $11
        and s.ended_at is not null)
        and (select count(*) from generate_series(1, $12::int4) as a cross join generate_series(1, $13::int4) as b cross join generate_series(1, $14::int4) as c) > 0
      for no key update of j
    ),
    opened as (
      insert into "queue_batches" as b (total, pending)
      select $15::int8, $16::int8 from held
      returning b.id
    ),
    waits as (
      insert into "queue_waits" (batch_id, job_id, queue, policy)
      select o.id, h.id, h.queue, $17::text from opened as o cross join held as h
    ),
    inserted as (
      insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, batch_id)
      select queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, o.id from (
      select $18::text as queue, r.kind as kind, coalesce(r.payload, 'null'::jsonb) as payload,
        r.priority as priority,
        coalesce(to_timestamp(r.run_at_ms / 1000), statement_timestamp() + r.delay_ms * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, r.max_attempts as max_attempts,
        $19::text as unique_key,
        r.metadata as metadata, r.place from (
        select r.payload, r.kind, r.priority, r.delay_ms, r.run_at_ms, r.max_attempts, r.metadata, r.place as place
        from rows from (jsonb_to_recordset($20::text::jsonb) as (payload jsonb, kind text, priority int2, delay_ms float8, run_at_ms float8, max_attempts int2, metadata jsonb))
          with ordinality as r(payload, kind, priority, delay_ms, run_at_ms, max_attempts, metadata, place)) as r) as i cross join opened as o
      order by place
      returning id, queue, run_at
    ),
    recorded as (
      insert into "queue_steps" as s (job_id, queue, name, kind, output, fence, started_at, ended_at)
      select h.id, h.queue, $21, 'enqueue',
        jsonb_build_object('batch', o.id, 'ids', (select json_agg(i.id) from inserted as i)), h.fence,
        statement_timestamp() - $22::float8 * interval '1 millisecond', statement_timestamp()
      from opened as o cross join held as h
      returning s.output
    )
    select r.output::text as children, false as woke from recorded as r
    union all
    select k.output::text, false from known as k
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 1
-- $5 = "mail"
-- $6 = 42
-- $7 = null
-- $8 = 1
-- $9 = 42
-- $10 = "mail"
-- $11 = "mail"
-- $12 = 1
-- $13 = 1
-- $14 = 1
-- $15 = 2
-- $16 = 2
-- $17 = "detached"
-- $18 = "mail"
-- $19 = null
-- $20 = "[{\"payload\":{\"text\":\"mail\"},\"kind\":\"mail\",\"priority\":5,\"delay_ms\":0,\"run_at_ms\":null,\"max_attempts\":20,\"metadata\":{\"text\":\"mail\"}},{\"payload\":null,\"kind\":\"mail 2\",\"priority\":1,\"delay_ms\":1000,\"run_at_ms\":1709210096789,\"max_attempts\":1,\"metadata\":{}}]"
-- $21 = "mail"
-- $22 = 1
