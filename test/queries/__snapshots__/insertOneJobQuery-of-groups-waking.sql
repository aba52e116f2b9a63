with "inserted" as (
    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight)
    select queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight from (
      select $1::text as queue, $2::text as kind,
        $3::text::jsonb as payload, $4::int2 as priority,
        coalesce(to_timestamp($5::float8 / 1000),
          statement_timestamp() + $6::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, $7::int2 as max_attempts,
        $8::text as unique_key, $9::text::jsonb as metadata, $10::text as group_key, $11::int2 as weight, 1 as place) as i order by place
    returning id, run_at, queue, group_key), "noted" as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from inserted as g
        where g.group_key is not null
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part), "woke" as (
    select pg_notify($12::text, $13::text) is not null as woke from inserted as i
    where i.run_at <= statement_timestamp()), "enqueued" as (
    select coalesce(i.id, null) as id, coalesce((select not w.woke from woke as w), i.id is null) as duplicate
    from (select 1) as one left join inserted as i on true) select "id", "duplicate" from "enqueued"
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "{\"text\":\"mail\"}"
-- $4 = 5
-- $5 = null
-- $6 = 0
-- $7 = 20
-- $8 = null
-- $9 = "{\"text\":\"mail\"}"
-- $10 = "mail"
-- $11 = 3
-- $12 = "queue_wake_queue_jobs"
-- $13 = "\u0001mail"
