    select j.id as id from "queue_jobs" as j
    where j.id > $1::int8 and j.id <= $2::int8 and j.queue in (
        select jsonb_array_elements_text($3::text::jsonb)) and j.kind = $4 and j.worker_id is null and j.run_at > statement_timestamp()
        and (j.run_at < 'infinity' or (j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = 'ClaimRefusedError'))
    order by j.id limit $5
-- $1 = 0
-- $2 = 42
-- $3 = "[\"mail\"]"
-- $4 = "mail"
-- $5 = 10
