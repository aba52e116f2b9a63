    with i as materialized (
      select id, fence, coalesce(state, 'completed') as state, coalesce(keep, true) as keep,
        nullif(output, 'null') as output,
        nullif(error, 'null') || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as error
      from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
      cross join rows from (unnest($4::text::int8[]), unnest($5::text::int8[]), unnest($6::text::text[]), unnest($7::text::bool[]),
        jsonb_array_elements($8::text::jsonb),
        jsonb_array_elements($9::text::jsonb))
        as r(id, fence, state, keep, output, error)
    ),
    finished as (
    delete from "queue_jobs" as j
    where j.queue = $10 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $11::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
        and (j.cancel_reason is null or j.id not in (select id from i where state = 'discarded'))
    returning j.*, j.group_key as ended_group, j.run_at as ended_run_at
    ),
    blocking as materialized (
      select b.id, b.until, b.worker_id, b.ended_group from (
        select b.*, e.ended_group from (select i.id, 'infinity'::timestamptz as until, null::int8 as worker_id from i
        where i.state = 'discarded') as b full join finished as e on e.id = b.id offset 0
      ) as b
      where b.id is not null and b.ended_group is not null
    ),
    blocked as (
      insert into "queue_holds" as h (queue, group_key, job_id, until, worker_id)
      select $12::text, b.ended_group, b.id, b.until, b.worker_id from blocking as b
      order by b.ended_group, b.id
      on conflict (queue, group_key, job_id) do update
        set (until, worker_id) = (excluded.until, excluded.worker_id)
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select $13::text as queue, statement_timestamp() as due_at, e.ended_group as group_key
        from finished as e
        where e.ended_group is not null and e.id not in (select id from blocking)
        union
        select $14::text, b.until, b.ended_group from blocking as b
        where b.until < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    ),
    recorded as (
      insert into "queue_results" (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts,
        priority, weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at,
        claimed_at, finished_at)
      select f.id, f.queue, f.kind, f.payload, i.state, i.output, case when i.error is null then f.errors
        else (case when jsonb_array_length(f.errors) >= 10 then f.errors - 0 else f.errors end) || i.error end,
        f.attempt, f.max_attempts, f.priority, f.weight, f.fence, f.batch_id, f.unique_key, f.group_key,
        f.metadata, f.worker_id, f.created_at, f.run_at, f.claimed_at,
        statement_timestamp()
      from finished as f join i on i.id = f.id and i.fence = f.fence
      where i.keep
    )
    select id, fence from i where (id, fence) not in (select id, fence from finished)
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "{42}"
-- $5 = "{1}"
-- $6 = "{discarded}"
-- $7 = "{}"
-- $8 = "[]"
-- $9 = "[{\"attempt\":1,\"name\":\"Error\",\"message\":\"mail\",\"stack\":\"mail\"}]"
-- $10 = "mail"
-- $11 = 42
-- $12 = "mail"
-- $13 = "mail"
-- $14 = "mail"
