    with now as materialized (select statement_timestamp() as at),
    live as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = any(array(select unnest($2::text::int8[])))
      order by j.id for no key update
    )
    update "queue_jobs" as j
    set run_at = case when j.worker_id is null then least(j.run_at, now.at)
      else greatest(now.at, j.claimed_at + interval '1 microsecond') end
    from now
    where j.queue = $3 and j.id = any(array(select id from live))
    returning j.id
-- $1 = "mail"
-- $2 = "{42}"
-- $3 = "mail"
