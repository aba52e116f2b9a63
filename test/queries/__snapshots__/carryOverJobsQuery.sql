    with i as materialized (
      select id, attempt, to_timestamp(created_at_ms / 1000) as created_at
      from rows from (
        unnest($1::text::int8[]), unnest($2::text::int2[]), unnest($3::text::float8[])
      ) as r(id, attempt, created_at_ms)
    )
    update "queue_jobs" as j
    set attempt = i.attempt, created_at = coalesce(i.created_at, j.created_at)
    from i
    where j.queue = $4 and j.id = any(array(select id from i)) and i.id = j.id
      and j.worker_id is null and j.attempt = 0
    returning j.id
-- $1 = "{42,42}"
-- $2 = "{2,0}"
-- $3 = "{1709210096789,null}"
-- $4 = "mail"
