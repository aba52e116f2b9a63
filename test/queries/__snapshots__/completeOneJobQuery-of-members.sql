    with finished as (
    delete from "queue_jobs" as j
    where j.queue = $1 and j.id = $2::int8
        and j.worker_id is not distinct from $3::int8 and j.fence = $4::int8
        and pg_current_xact_id_if_assigned() is not null and (select count(*) from generate_series(1, $5::int4) as a cross join generate_series(1, $6::int4) as b cross join generate_series(1, $7::int4) as c) > 0
    returning j.*, j.batch_id as member_of
    ),
    tallied as (
      insert into "queue_tallies" (batch_id, ended, failed, cancel_reason)
      select e.member_of, count(*)::int4, count(*) filter (where false)::int4, null
      from finished as e where e.member_of is not null
      group by e.member_of
    ),
    recorded as (
      insert into "queue_results" (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts,
        priority, weight, fence, batch_id, unique_key, group_key, metadata, worker_id, created_at, run_at,
        claimed_at, finished_at)
      select f.id, f.queue, f.kind, f.payload, 'completed', $8::text::jsonb, f.errors,
        f.attempt, f.max_attempts, f.priority, f.weight, f.fence, f.batch_id, f.unique_key, f.group_key,
        f.metadata, f.worker_id, f.created_at, f.run_at, f.claimed_at,
        statement_timestamp()
      from finished as f
    )
    select id from finished
-- $1 = "mail"
-- $2 = 42
-- $3 = 42
-- $4 = 1
-- $5 = 1
-- $6 = 1
-- $7 = 1
-- $8 = "{\"text\":\"mail\"}"
