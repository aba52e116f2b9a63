    with marked as materialized (
      select j.id, j.kind, j.metadata - $1::text as metadata,
        to_timestamp((j.metadata -> $2::text ->> 'runAtMs')::float8 / 1000) as run_at,
        j.metadata -> $3::text ->> 'uniqueKey' as unique_key
      from "queue_jobs" as j
      where j.queue = $4 and j.id = any(array(select unnest($5::text::int8[])))
        and j.metadata -> $6::text is not null
      order by j.id for no key update
    ),
    taken as materialized (
      select j.kind, j.unique_key from "queue_jobs" as j
      where j.queue = $7 and j.kind = any(array(select distinct kind from marked))
        and j.unique_key = any(array(select unique_key from marked))
    ),
    i as materialized (
      select m.id, m.metadata, m.run_at, case when t.kind is null
          and row_number() over (partition by m.kind, m.unique_key order by m.id) = 1 then m.unique_key end
        as unique_key
      from marked as m left join taken as t on t.kind = m.kind and t.unique_key = m.unique_key
    ),
    released as (
    update "queue_jobs" as j
    set run_at = i.run_at, unique_key = i.unique_key, metadata = i.metadata
    from i
    where j.queue = $8 and j.id = any(array(select id from i)) and i.id = j.id
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
-- $2 = "drizzle-queue:import"
-- $3 = "drizzle-queue:import"
-- $4 = "mail"
-- $5 = "{42}"
-- $6 = "drizzle-queue:import"
-- $7 = "mail"
-- $8 = "mail"
