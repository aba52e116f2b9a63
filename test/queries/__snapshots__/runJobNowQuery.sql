    with now as materialized (select statement_timestamp() as at),
    free as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = $2 and j.worker_id is null
        and (j.run_at < 'infinity' or (j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = 'ClaimRefusedError'))
      for no key update skip locked
    )
    update "queue_jobs" as j set run_at = least(j.run_at, now.at)
    from now
    where j.queue = $3 and j.id = any(array(select id from free))
    returning j.id
-- $1 = "mail"
-- $2 = 42
-- $3 = "mail"
