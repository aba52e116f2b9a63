    select j.id, j.queue from "queue_jobs" as j
    where j.id = any(array(select unnest($1::text::int8[])))
      and j.worker_id is null and (j.run_at < 'infinity' or (j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = 'ClaimRefusedError'))
-- $1 = "{42}"
