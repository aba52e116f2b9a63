    select j.id, j.queue from "queue_jobs" as j
    where j.id = any(array(select unnest($1::text::int8[])))
      and j.worker_id is null and j.run_at < 'infinity'
-- $1 = "{42}"
