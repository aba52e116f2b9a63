    with i as materialized (
      select id, fence, progress
      from rows from (unnest($1::text::int8[]), unnest($2::text::int8[]), jsonb_array_elements($3::text::jsonb))
        as r(id, fence, progress)
    ),
    free as (
      select j.id from "queue_jobs" as j
      where j.queue = $4 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $5::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
      for no key update skip locked
    )
    update "queue_jobs" as j set progress = i.progress
    from i
    where j.queue = $6 and j.id = any(array(select id from free))
      and i.id = j.id and i.fence = j.fence
    returning j.id
-- $1 = "{42}"
-- $2 = "{1}"
-- $3 = "[{\"text\":\"mail\"}]"
-- $4 = "mail"
-- $5 = 42
-- $6 = "mail"
