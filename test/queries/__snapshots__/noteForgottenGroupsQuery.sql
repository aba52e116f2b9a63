    with recursive looked as (
      select f.group_key, 1 as n from (
        select j.group_key from "queue_jobs" as j
        where j.queue = $1 and j.group_key > $2 and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1)))
        order by j.group_key limit 1
      ) as f
      union all
      select f.group_key, l.n + 1 from looked as l cross join lateral (
        select j.group_key from "queue_jobs" as j
        where j.queue = $3 and j.group_key > l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1)))
        order by j.group_key limit 1
      ) as f
      where l.n < $4::int4
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select $5::text as queue, statement_timestamp() as due_at, l.group_key from looked as l
        where coalesce((
          select g.ready_at from "queue_groups" as g
          where g.queue = $6 and g.group_key = l.group_key
        ), 'infinity') > statement_timestamp()
          and (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j where j.queue = $7 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $8 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $9 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        )
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select count(*)::float8 as looked, max(l.group_key) as last from looked as l
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 1000
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "mail"
