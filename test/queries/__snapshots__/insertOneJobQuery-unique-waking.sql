with "inserted" as (
    insert into "queue_jobs" (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata)
    values ($1, $2, $3::text::jsonb, $4, statement_timestamp(), statement_timestamp(),
      $5, $6, $7::text::jsonb)
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing
    returning id, run_at), "woke" as (
    select pg_notify($8::text, $9::text) is not null as woke from inserted as i
    where i.run_at <= statement_timestamp()), "enqueued" as (
    select coalesce(i.id, (
        select j.id from "queue_jobs" as j
        where j.queue = $10 and j.kind = $11 and j.unique_key = $12)) as id, coalesce((select not w.woke from woke as w), i.id is null) as duplicate
    from (select 1) as one left join inserted as i on true) select "id", "duplicate" from "enqueued"
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "{\"text\":\"mail\"}"
-- $4 = 5
-- $5 = 20
-- $6 = "mail"
-- $7 = "{\"text\":\"mail\"}"
-- $8 = "queue_wake_queue_jobs"
-- $9 = "\u0001mail"
-- $10 = "mail"
-- $11 = "mail"
-- $12 = "mail"
