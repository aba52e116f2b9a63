    with i as materialized (
      select id, fence, attempt, statement_timestamp() + delay_ms * interval '1 millisecond' as run_at,
        nullif(error, 'null') || jsonb_build_object('at', to_char(statement_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as error
      from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
      cross join rows from (
        unnest($4::text::int8[]), unnest($5::text::int8[]),
        unnest($6::text::int2[]),
        unnest($7::text::float8[]),
        jsonb_array_elements($8::text::jsonb)
      ) as r(id, fence, attempt, delay_ms, error)
    ),
    ended as (
    update "queue_jobs" as j
    set worker_id = null, claimed_at = null, attempt = i.attempt, errors = case when i.error is null then j.errors
        else (case when jsonb_array_length(j.errors) >= 10 then j.errors - 0 else j.errors end) || i.error end
    from i
    where i.id = j.id and i.fence = j.fence and j.queue = $9 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $10::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
    returning j.id, j.cancel_reason, j.group_key as ended_group, j.run_at as ended_run_at
    ),
    blocking as materialized (
      select b.id, b.until, b.worker_id, b.ended_group from (
        select b.*, e.ended_group from (select i.id, i.run_at as until, null::int8 as worker_id from i where i.run_at is not null) as b full join ended as e on e.id = b.id offset 0
      ) as b
      where b.id is not null and b.ended_group is not null
    ),
    blocked as (
      insert into "queue_holds" as h (queue, group_key, job_id, until, worker_id)
      select $11::text, b.ended_group, b.id, b.until, b.worker_id from blocking as b
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
        select $12::text as queue, statement_timestamp() as due_at, e.ended_group as group_key
        from ended as e
        where e.ended_group is not null and e.id not in (select id from blocking)
        union
        select $13::text, b.until, b.ended_group from blocking as b
        where b.until < 'infinity'
        union
        select $14::text, e.ended_run_at, e.ended_group from ended as e
        where e.ended_group is not null and e.ended_run_at > statement_timestamp()
          and e.ended_run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select * from ended
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "{42}"
-- $5 = "{1}"
-- $6 = "{1}"
-- $7 = "{1000}"
-- $8 = "[{\"attempt\":1,\"name\":\"Error\",\"message\":\"mail\",\"stack\":\"mail\"}]"
-- $9 = "mail"
-- $10 = 42
-- $11 = "mail"
-- $12 = "mail"
-- $13 = "mail"
-- $14 = "mail"
