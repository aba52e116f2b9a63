    with waiting as materialized (
      select j.id, j.fence from "queue_jobs" as j where j.queue = $1 and j.kind = $2 and j.unique_key = $3
    and j.unique_key is not null and (j.unique_key is not null or j.id in (select generate_series(-10000, -1))) and j.worker_id is null and j.blockers is not null and (
        j.run_at > statement_timestamp() or exists (
          select from "queue_steps" as s
          where s.job_id = j.id and s.queue = j.queue and s.ended_at is null and s.error is null
            and (s.kind <> 'sleep' or s.until > statement_timestamp())
        )
      )
    ),
    free as materialized (
      select j.id from "queue_jobs" as j join waiting as w on j.id = w.id and j.fence = w.fence
      where j.queue = $4 and j.worker_id is null and j.cancel_reason is null
      for update of j skip locked
    ),
    finished as (
    delete from "queue_jobs" as j
    where j.queue = $5 and j.id = any(array(select id from free))
    returning j.id, j.queue, j.kind, j.errors, j.attempt, j.max_attempts, j.priority, j.weight,
      j.fence, j.batch_id, j.unique_key, j.group_key, j.metadata, j.worker_id, j.created_at, j.run_at,
      j.claimed_at, j.batch_id as member_of
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
      select f.id, f.queue, f.kind, null::jsonb, 'completed', null::jsonb, f.errors,
        f.attempt, f.max_attempts, f.priority, f.weight, f.fence, f.batch_id, f.unique_key, f.group_key,
        f.metadata, f.worker_id, f.created_at, case when f.run_at = 'infinity' then statement_timestamp() else f.run_at end, f.claimed_at,
        statement_timestamp()
      from finished as f
    )
    select f.id, case when f.metadata @> '{"drizzle_queue.awaited": true}' then pg_notify($6::text, f.id::text) is not null end as told from finished as f
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "queue_end_queue_jobs"
