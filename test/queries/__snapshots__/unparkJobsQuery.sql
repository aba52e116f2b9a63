    with now as materialized (select statement_timestamp() as at),
    live as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = any(array(select unnest($2::text::int8[])))
      order by j.id for no key update
    ),
    unparked as (
      update "queue_jobs" as j
      set run_at = case when j.worker_id is null then least(j.run_at, now.at)
        else greatest(now.at, j.claimed_at + interval '1 microsecond') end
      from now
      where j.queue = $3 and j.id = any(array(select id from live))
      returning j.id
    )
    select u.id, pg_notify($4::text, $5::text) is not null as woke
    from unparked as u
-- $1 = "mail"
-- $2 = "{42}"
-- $3 = "mail"
-- $4 = "queue_wake_queue_jobs"
-- $5 = "mail"
