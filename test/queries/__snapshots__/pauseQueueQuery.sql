    with paused as (
      insert into "queue_pauses" (queue, paused_at) values ($1, statement_timestamp())
      on conflict (queue) do nothing
      returning queue
    )
    select p.queue, pg_notify($2::text, $3) is not null as woke
    from paused as p
-- $1 = "mail"
-- $2 = "queue_wake_queue_jobs"
-- $3 = ""
