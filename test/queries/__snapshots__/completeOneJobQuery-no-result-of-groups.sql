    with ended as (
    delete from "queue_jobs" as j
    where j.queue = $1 and j.id = $2::int8
        and j.worker_id is not distinct from $3::int8 and j.fence = $4::int8
        and pg_current_xact_id_if_assigned() is not null and (select count(*) from generate_series(1, $5::int4) as a cross join generate_series(1, $6::int4) as b cross join generate_series(1, $7::int4) as c) > 0
    returning j.id, j.group_key as ended_group, j.run_at as ended_run_at
    ),
    blocking as materialized (
      select b.id, b.until, b.worker_id, b.ended_group from (
        select b.*, e.ended_group from (select $8::int8 as id, 'infinity'::timestamptz as until, $9::int8 as worker_id) as b full join ended as e on e.id = b.id offset 0
      ) as b
      where b.id is not null and b.ended_group is not null
    ),
    blocked as (
      insert into "queue_holds" as h (queue, group_key, job_id, until, worker_id)
      select $10::text, b.ended_group, b.id, b.until, b.worker_id from blocking as b
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
        select $11::text as queue, statement_timestamp() as due_at, e.ended_group as group_key
        from ended as e
        where e.ended_group is not null and e.id not in (select id from blocking)
        union
        select $12::text, b.until, b.ended_group from blocking as b
        where b.until < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select * from ended
-- $1 = "mail"
-- $2 = 42
-- $3 = 42
-- $4 = 1
-- $5 = 1
-- $6 = 1
-- $7 = 1
-- $8 = 42
-- $9 = 42
-- $10 = "mail"
-- $11 = "mail"
-- $12 = "mail"
