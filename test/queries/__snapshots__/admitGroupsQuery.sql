    with free as materialized (
        select n.ctid as at, n.id, n.due_at, n.group_keys from "queue_notes" as n
        where n.queue = $1 and n.due_at <= statement_timestamp()
        order by n.due_at, n.id limit (
          select count(*) from (
            select sum(n.keys) over (order by n.due_at, n.id) - n.keys as before from (
              select n.due_at, n.id, cardinality(n.group_keys) as keys from "queue_notes" as n
              where n.queue = $2 and n.due_at <= statement_timestamp()
              order by n.due_at, n.id limit (select $3::int8)
            ) as n
          ) as n
          where n.before < $4::int8
        )
        for update of n skip locked
    ),
    note as materialized (
      select n.at, n.id, n.due_at, unnest(n.group_keys) as group_key from (
        select n.*, sum(cardinality(n.group_keys)) over (order by n.due_at, n.id)
            - cardinality(n.group_keys) as before
        from generate_series(1, $5::int4) as a cross join generate_series(1, $6::int4) as b cross join generate_series(1, $7::int4) as c cross join free as n
      ) as n
      where n.before < $8::int8
    ),
    known as materialized (
      select a.group_key, a.due_at, g.at, g.turn from (
        select group_key, min(due_at) as due_at from note group by group_key
      ) as a
      left join lateral (
        select g.ctid as at, g.turn from "queue_groups" as g
        where g.queue = $9 and g.group_key = a.group_key
        offset 0
      ) as g on true
    ),
    waiting as materialized (
      select k.* from known as k where (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j where j.queue = $10 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $11 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $12 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        )
    ),
    ring as materialized (
      select coalesce((
        select g.turn from "queue_groups" as g
        where g.queue = $13 and g.turn >= 0 and g.ready_at = '-infinity'
        order by g.turn limit 1
      ), 0) as turn
    ),
    locked as materialized (
      select w.group_key, w.due_at, w.at from waiting as w cross join lateral (
        select from "queue_groups" as g
        where g.ctid = w.at and g.queue = $14 and g.group_key = w.group_key and g.turn = w.turn
        for no key update skip locked
      ) as g
    ),
    made as (
      insert into "queue_groups" (queue, group_key, ready_at)
      select $15::text, w.group_key, w.due_at from waiting as w
      where w.at is null order by w.group_key
      on conflict (queue, group_key) do nothing
      returning group_key
    ),
    folded as (
      update "queue_groups" as g
      set turn = 1 + g.turn,
        ready_at = case
          when g.ready_at = '-infinity' or g.turn > r.turn then '-infinity'
          else least(g.ready_at, l.due_at)
        end
      from locked as l cross join ring as r
      where g.ctid = l.at and (g.queue = $16 and g.group_key = l.group_key) is true
    ),
    heeded as materialized (
      select n.*, n.group_key in (select group_key from locked)
          or n.group_key in (select group_key from made)
          or n.group_key not in (select group_key from waiting) as used
      from note as n
    ),
    removed as (
      delete from "queue_notes" as n using (select distinct h.at, h.id from heeded as h where h.used) as h
      where n.ctid = h.at and n.queue = $17 and n.id = h.id
    ),
    kept as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select $18::text, n.due_at, array_agg(n.group_key) from heeded as n
      where not n.used and n.id in (select id from heeded where used)
      group by n.due_at, n.id
    )
    select (select count(*) from heeded where used)::float8 as used
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 4000
-- $4 = 4000
-- $5 = 1
-- $6 = 1
-- $7 = 1
-- $8 = 4000
-- $9 = "mail"
-- $10 = "mail"
-- $11 = "mail"
-- $12 = "mail"
-- $13 = "mail"
-- $14 = "mail"
-- $15 = "mail"
-- $16 = "mail"
-- $17 = "mail"
-- $18 = "mail"
