    with ended as (
    delete from "queue_jobs" as j
    where j.queue = $1 and j.id = $2::int8
        and j.worker_id is not distinct from $3::int8 and j.fence = $4::int8
        and pg_current_xact_id_if_assigned() is not null and (select count(*) from generate_series(1, $5::int4) as a cross join generate_series(1, $6::int4) as b cross join generate_series(1, $7::int4) as c) > 0
    returning j.id, j.group_key as ended_group, j.run_at as ended_run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct $8::text as queue, statement_timestamp() as due_at, e.ended_group as group_key
        from ended as e
        where e.ended_group is not null
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
-- $8 = "mail"
