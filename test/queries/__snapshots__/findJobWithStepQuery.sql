    select 'live' as state, j.queue, j.kind,
      j.payload::text as payload, j.priority, j.max_attempts,
      j.group_key, j.weight,
      (j.metadata - $1::text
        || jsonb_build_object($2::text, $3::int8))::text as metadata,
      coalesce((
        select true from "queue_steps" as s where s.job_id = j.id
          and s.queue = j.queue and s.name = $4 and s.name <> 'undo'
          and s.name not like 'undo:%'
      ), false) as has_step from "queue_jobs" as j where j.id = $5::int8
    union all
    select r.state, r.queue, r.kind,
      r.payload::text as payload, r.priority, r.max_attempts,
      r.group_key, r.weight,
      (r.metadata - $6::text
        || jsonb_build_object($7::text, $8::int8))::text as metadata,
      coalesce((
        select true from "queue_steps" as s where s.job_id = r.job_id
          and s.queue = r.queue and s.name = $9 and s.name <> 'undo'
          and s.name not like 'undo:%'
      ), false) as has_step from "queue_results" as r where r.job_id = $10::int8
-- $1 = "drizzle_queue.awaited"
-- $2 = "forkedFrom"
-- $3 = 42
-- $4 = "mail"
-- $5 = 42
-- $6 = "drizzle_queue.awaited"
-- $7 = "forkedFrom"
-- $8 = 42
-- $9 = "mail"
-- $10 = 42
