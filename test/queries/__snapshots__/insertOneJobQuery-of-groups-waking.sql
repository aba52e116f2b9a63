with "inserted" as (
    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight)
    values ($1, $2, $3::text::jsonb, $4, statement_timestamp(), statement_timestamp(),
      $5, $6, $7::text::jsonb, $8, $9)
    returning id, run_at, queue, group_key), "noted" as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from inserted as g
        where g.group_key is not null and g.run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part), "woke" as (
    select pg_notify($10::text, $11::text) is not null as woke from inserted as i
    where i.run_at <= statement_timestamp()), "enqueued" as (
    select coalesce(i.id, null) as id, coalesce((select not w.woke from woke as w), i.id is null) as duplicate
    from (select 1) as one left join inserted as i on true) select "id", "duplicate" from "enqueued"
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "{\"text\":\"mail\"}"
-- $4 = 5
-- $5 = 20
-- $6 = null
-- $7 = "{\"text\":\"mail\"}"
-- $8 = "mail"
-- $9 = 3
-- $10 = "queue_wake_queue_jobs"
-- $11 = "\u0001mail"
