    with unblocked as (
      delete from "queue_holds" as h
      where h.queue = $1 and h.group_key = $2 and h.until = 'infinity'
        and h.worker_id is null
      returning h.job_id
    )
    insert into "queue_notes" (queue, due_at, group_keys)
    select $3::text, statement_timestamp(), array[$4::text]
    where exists (select job_id from unblocked)
    returning id
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "mail"
