    with note as materialized (
      select n.due_at, n.id, n.group_key from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c cross join "queue_notes" as n
      where n.queue = $4 and n.due_at <= statement_timestamp()
      order by n.due_at, n.id limit (select $5::int8)
      for update of n skip locked
    ),
    asked as materialized (
      select group_key, min(due_at) as due_at from note group by group_key
    ),
    known as materialized (
      select g.group_key from "queue_groups" as g
      where g.queue = $6 and g.group_key = any(array(select group_key from asked))
    ),
    waiting as materialized (
      select a.group_key, a.due_at from asked as a
      where (a.group_key in (select group_key from known)) is true and exists (
            with head as materialized (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $7 and j.group_key = a.group_key and j.group_key is not null order by j.priority, j.run_at, j.id limit 1 + 100
            )
            select h.id, h.at from head as h where h.due
            union all
            select j.id, j.at from generate_series(0, 9) as band(priority)
            cross join lateral (
              select j.id, j.ctid as at from "queue_jobs" as j
              where j.queue = $8 and j.group_key = a.group_key and j.group_key is not null and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
              order by j.run_at, j.id limit 1
            ) as j
            where (select count(*) >= 1 + 100 and not bool_or(h.due) from head as h)
            limit 1
      )
    ),
    ring as materialized (
      select coalesce((
        select g.turn from "queue_groups" as g
        where g.queue = $9 and g.turn >= 0 and g.ready_at = '-infinity' order by g.turn limit 1
      ), 0) as turn
    ),
    locked as materialized (
      select w.group_key, w.due_at from waiting as w cross join lateral (
        select from "queue_groups" as g where g.queue = $10 and g.group_key = w.group_key
        for no key update skip locked
      ) as g
    ),
    made as (
      insert into "queue_groups" (queue, group_key, ready_at)
      select $11::text, a.group_key, a.due_at from asked as a
      where a.group_key not in (select group_key from known)
      order by a.group_key
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
      from locked as l cross join ring as r where g.queue = $12 and g.group_key = l.group_key
    ),
    first as materialized (
      select due_at, id from note order by due_at, id limit 1
    ),
    last as materialized (
      select due_at, id from note order by due_at desc, id desc limit 1
    ),
    used as (
      delete from "queue_notes" as n
      where n.queue = $13
        and (n.due_at, n.id) >= ((select due_at from first), (select id from first))
        and (n.due_at, n.id) <= ((select due_at from last), (select id from last))
        and (n.id in (
          select x.id from note as x
          where x.group_key in (select group_key from locked) or x.group_key in (select group_key from made)
            or x.group_key in (select group_key from known)
              and x.group_key not in (select group_key from waiting)
        )) is true
      returning 1
    )
    select count(*)::float8 as used from used
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "mail"
-- $5 = 4000
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "mail"
-- $10 = "mail"
-- $11 = "mail"
-- $12 = "mail"
-- $13 = "mail"
