    with i as materialized (
      select id, fence
      from rows from (unnest($1::text::int8[]), unnest($2::text::int8[])) as r(id, fence) cross join set_config('lock_timeout', $3::text, true) as patience
    ),
    free as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $4 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $5::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
      for no key update skip locked
    ),
    released as (
    update "queue_jobs" as j
    set worker_id = null, claimed_at = null, attempt = j.attempt - 1
    where j.queue = $6 and j.id = any(array(select id from free))
    returning j.id, j.group_key as ended_group, j.run_at as ended_run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct $7::text as queue, statement_timestamp() as due_at, e.ended_group as group_key
        from released as e
        where e.ended_group is not null
        union
        select $8::text, e.ended_run_at, e.ended_group from released as e
        where e.ended_group is not null and e.ended_run_at > statement_timestamp()
          and e.ended_run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select id, false as locked from released
    union all
    select j.id, true from "queue_jobs" as j
    where j.queue = $9 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $10::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true and j.id not in (select id from released)
-- $1 = "{42}"
-- $2 = "{7}"
-- $3 = "100ms"
-- $4 = "mail"
-- $5 = 42
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "mail"
-- $10 = 42
