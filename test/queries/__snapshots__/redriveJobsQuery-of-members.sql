    with discarded as materialized (
      select r.* from "queue_results" as r
      where r.state = 'discarded'
      order by r.job_id limit $1::int8
      for no key update skip locked
    ),
    redriven as (
      insert into "queue_jobs" (id, queue, kind, payload, priority, run_at, attempt, max_attempts,
        weight, fence, batch_id, unique_key, group_key, errors, metadata,
        created_at) overriding system value
      select d.job_id, d.queue, d.kind, d.payload, d.priority, statement_timestamp(), 0, d.max_attempts,
        d.weight, d.fence, d.batch_id, d.unique_key, d.group_key, d.errors, d.metadata,
        d.created_at
      from discarded as d order by d.queue, d.kind, d.unique_key, d.job_id
      on conflict do nothing
      returning id, queue, batch_id as member_of
    ),
    tallied as (
      insert into "queue_tallies" (batch_id, ended, failed)
      select e.member_of, -count(*)::int4, -count(*)::int4
      from redriven as e where e.member_of is not null
      group by e.member_of
    ),
    removed as (
      delete from "queue_results" as r
      where (r.job_id, r.queue) in (
        select id, queue from redriven)
    )
    select (select count(*) from redriven)::float8 as redriven,
      (select count(*) from discarded)::float8 as discarded
-- $1 = null
