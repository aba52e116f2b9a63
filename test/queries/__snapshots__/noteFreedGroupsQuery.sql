    insert into "queue_notes" (queue, due_at, group_key)
    select distinct $1::text, statement_timestamp(), h.group_key from "queue_holds" as h
    cross join lateral (
      select from "queue_jobs" as j
      where j.queue = $2 and j.id = h.job_id and j.worker_id is not null and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
      offset 0
    ) as j
    where h.queue = $3
    returning id
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "mail"
