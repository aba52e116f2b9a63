    with waiting as materialized (
      select j.id, j.fence from "queue_jobs" as j where j.queue = $1 and j.id = $2::int8 and j.kind = $3 and j.worker_id is null and j.blockers is not null and (
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
      j.claimed_at, j.group_key as ended_group, j.run_at as ended_run_at, j.batch_id as member_of
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct $6::text as queue, statement_timestamp() as due_at, e.ended_group as group_key
        from finished as e
        where e.ended_group is not null
          and (e.ended_group in (
            select g.group_key from "queue_groups" as g
            where g.queue = $7 and g.bounded_since is not null
              and g.group_key = any(array(select e.ended_group from finished as e))
          )) is true
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    ),
    tallied as (
      insert into "queue_tallies" (batch_id, ended, failed, cancel_reason)
      select e.member_of, count(*)::int4, count(*) filter (where false)::int4, null
      from finished as e where e.member_of is not null
      group by e.member_of
    ),
    unblocked as (
      delete from "queue_holds" as h using finished as u
      where h.queue = $8::text
        and h.group_key = u.group_key and h.job_id = u.id
    )
    select f.id, case when f.metadata @> '{"drizzle_queue.awaited": true}' then pg_notify($9::text, f.id::text) is not null end as told from finished as f
-- $1 = "mail"
-- $2 = 42
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "queue_end_queue_jobs"
