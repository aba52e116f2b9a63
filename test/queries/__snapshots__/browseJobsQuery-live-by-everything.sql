    select * from (
      (select j.id, j.queue, j.kind,
        case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end as state,
        j.attempt, j.max_attempts, j.priority, j.unique_key, j.group_key, j.worker_id,
        j.cancel_reason is not null as cancelling,
        date_part('epoch', j.created_at) * 1000 as created_at,
        date_part('epoch', nullif(j.run_at, 'infinity')) * 1000 as run_at,
        date_part('epoch', j.claimed_at) * 1000 as claimed_at,
        null::float8 as finished_at,
        case when pg_column_size(j.payload) <= 262144
          then left(j.payload::text, $1) end as payload,
        true as payload_kept,
        left(j.errors -> -1 ->> 'name', 100) as error_name,
        left(j.errors -> -1 ->> 'message', 300) as error from (
        select j.* from "queue_jobs" as j
        where j.queue in (
        select jsonb_array_elements_text($2::text::jsonb)) and j.id = $3 and j.queue = $4 and j.kind = $5 and j.group_key = $6 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $7 and j.created_at >= $8::timestamptz and j.created_at < $9::timestamptz and (j.unique_key = $10 or j.waiting_key in ($11, $12)) and j.worker_id = $13 and (j.payload @> $14::text::jsonb or j.payload @> $15::text::jsonb) and j.id < $16
        order by j.id desc limit $17
      ) as j)
    ) as line
    order by id desc limit $18
-- $1 = 240
-- $2 = "[\"mail\",\"mail, too\"]"
-- $3 = 42
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "due"
-- $8 = "2024-02-29T12:34:56.789Z"
-- $9 = "2024-02-29T12:34:56.789Z"
-- $10 = "mail"
-- $11 = "mail"
-- $12 = "throttle:mail"
-- $13 = 42
-- $14 = "{\"text\":\"mail\"}"
-- $15 = "{}"
-- $16 = 42
-- $17 = 50
-- $18 = 50
