    with told as materialized (
      select j.id, j.worker_id is null and j.blockers > 0 as waited from "queue_jobs" as j
      where j.queue = $1 and j.id = any(array(select unnest($2::text::int8[])))
      order by j.id for no key update
    )
    update "queue_jobs" as j
    set cancel_reason = null, blockers = case when j.worker_id is not null then j.blockers end
    where j.queue = $3 and j.id = any(array(select id from told))
    returning j.id, j.id in (select id from told where waited) as waited
-- $1 = "mail"
-- $2 = "{42}"
-- $3 = "mail"
