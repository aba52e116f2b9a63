    with known as materialized (
      select s.output from "queue_steps" as s where s.job_id = $1::int8 and s.queue = $2 and s.name = $3
        and s.ended_at is not null and s.fence = $4::int8
    ),
    held as materialized (
      select j.id, j.queue, j.fence from "queue_jobs" as j cross join set_config('lock_timeout', $5::text, true) as patience
      where j.queue = $6 and j.id = $7::int8
        and j.worker_id is not distinct from $8::int8 and j.fence = $9::int8
        and not exists (select from "queue_steps" as s where s.job_id = $10::int8 and s.queue = $11 and s.name = $12
        and s.ended_at is not null)
        and (select count(*) from generate_series(1, $13::int4) as a cross join generate_series(1, $14::int4) as b cross join generate_series(1, $15::int4) as c) > 0
      for no key update of j
    ),
    opened as (
      insert into "queue_batches" as b (total, pending)
      select $16::int8, $17::int8 from held
      returning b.id
    ),
    waits as (
      insert into "queue_waits" (batch_id, job_id, queue, policy)
      select o.id, h.id, h.queue, $18::text from opened as o cross join held as h
    ),
    inserted as (
      insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight, batch_id)
      select queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight, o.id from (
      select $19::text as queue, $20::text as kind, r.element as payload,
        $21::int2 as priority,
        coalesce(to_timestamp($22::float8 / 1000), statement_timestamp() + $23::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $24::int2 as max_attempts,
        $25::text as unique_key,
        $26::text::jsonb as metadata, $27::text as group_key, $28::int2 as weight, r.place from (
        select r.element, r.place as place
        from jsonb_array_elements($29::text::jsonb)
          with ordinality as r(element, place)) as r) as i cross join opened as o
      order by place
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
    ),
    recorded as (
      insert into "queue_steps" as s (job_id, queue, name, kind, output, fence, started_at, ended_at)
      select h.id, h.queue, $30, 'enqueue',
        jsonb_build_object('batch', o.id, 'ids', (select json_agg(i.id) from inserted as i)), h.fence,
        statement_timestamp() - $31::float8 * interval '1 millisecond', statement_timestamp()
      from opened as o cross join held as h
      returning s.output
    )
    select r.output::text as children, case when (select bool_or(i.run_at <= statement_timestamp()) from inserted as i)
      then pg_notify($32::text, $33::text) is not null end as woke from recorded as r
    union all
    select k.output::text, false from known as k
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 1
-- $5 = "100ms"
-- $6 = "mail"
-- $7 = 42
-- $8 = 42
-- $9 = 1
-- $10 = 42
-- $11 = "mail"
-- $12 = "mail"
-- $13 = 1
-- $14 = 1
-- $15 = 1
-- $16 = 1
-- $17 = 1
-- $18 = "parent"
-- $19 = "mail"
-- $20 = "mail"
-- $21 = 5
-- $22 = null
-- $23 = 0
-- $24 = 20
-- $25 = null
-- $26 = "{\"text\":\"mail\"}"
-- $27 = "mail"
-- $28 = 3
-- $29 = "[{\"text\":\"mail\"}]"
-- $30 = "mail"
-- $31 = 1
-- $32 = "queue_wake_queue_jobs"
-- $33 = "\u0001mail"
