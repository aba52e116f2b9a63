    with plain as materialized (
      select j.id from generate_series(0, 9) as band(priority)
      cross join lateral (
        select j.id from "queue_jobs" as j
        where j.queue = $1 and j.priority = band.priority::int2
          and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
          and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
        order by j.run_at, j.id limit (select $2::int8)
        for no key update skip locked
      ) as j
      limit (select $3::int8)
    ),
    adopted as (
      update "queue_jobs" as j set group_key = $4
      where j.queue = $5 and j.id = any(array(select id from plain))
      returning j.run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select distinct $6::text, a.run_at, array[$7::text] from adopted as a
      where a.run_at < 'infinity'
    )
    select count(*)::float8 as adopted from adopted
-- $1 = "mail"
-- $2 = 1000
-- $3 = 1000
-- $4 = "-"
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "-"
