    with looked as materialized (
      select g.group_key, g.ready_at from "queue_groups" as g
      where g.queue = $1 and g.group_key > $2
      order by g.group_key limit (select $3::int8)
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_key)
      select $4::text, statement_timestamp(), l.group_key from looked as l
      where l.ready_at = 'infinity' and exists (
        select from generate_series(0, 9) as band(priority)
        cross join lateral (
          select from "queue_jobs" as j
          where j.queue = $5 and j.group_key = l.group_key and j.group_key is not null
            and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
          order by j.run_at, j.id limit 1
        ) as j
      )
    )
    select count(*)::float8 as looked, max(l.group_key) as last from looked as l
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 1000
-- $4 = "mail"
-- $5 = "mail"
