    update "queue_jobs" as j
    set worker_id = null, claimed_at = null, attempt = j.attempt - 1
    where j.queue = $1 and j.worker_id = $2
      and j.id <> all(array(select jsonb_array_elements_text($3::text::jsonb)::int8))
    returning j.id
-- $1 = "mail"
-- $2 = 42
-- $3 = "[42]"
