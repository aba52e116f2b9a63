    with marked as materialized (
      select j.id, j.kind, (j.metadata -> $1::text) ->> 'uniqueKey' as unique_key
      from "queue_jobs" as j
      where j.queue = $2 and j.id = any(array(select unnest($3::text::int8[])))
        and (j.metadata -> $4::text) is not null
      order by j.id for no key update
    ),
    taken as materialized (
      select j.kind, j.unique_key from "queue_jobs" as j
      where j.queue = $5 and j.kind = any(array(select distinct kind from marked))
        and j.unique_key = any(array(select unique_key from marked))
    ),
    keyed as materialized (
      select m.id from (
        select m.*, row_number() over (partition by m.kind, m.unique_key order by m.id) as place
        from marked as m
      ) as m
      where m.place = 1
        and ((m.kind, m.unique_key) in (select t.kind, t.unique_key from taken as t)) is not true
    ),
    released as (
    update "queue_jobs" as j
    set run_at = to_timestamp(((j.metadata -> $6::text) ->> 'runAtMs')::float8 / 1000),
      metadata = j.metadata - $7::text,
      unique_key = case when (j.id in (select id from keyed)) is true then (j.metadata -> $8::text) ->> 'uniqueKey' end
    where j.queue = $9 and j.id = any(array(select id from marked))
    returning j.id, j.queue, j.group_key, j.run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from released as g
        where g.group_key is not null and g.run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select id from released
-- $1 = "drizzle-queue:import"
-- $2 = "mail"
-- $3 = "{42}"
-- $4 = "drizzle-queue:import"
-- $5 = "mail"
-- $6 = "drizzle-queue:import"
-- $7 = "drizzle-queue:import"
-- $8 = "drizzle-queue:import"
-- $9 = "mail"
