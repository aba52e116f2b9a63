    with discarded as materialized (
      select r.* from "queue_results" as r
      where r.state = 'discarded' and r.job_id = $1 and r.queue = $2
      order by r.job_id limit $3::int8
      for no key update skip locked
    ),
    redriven as (
      insert into "queue_jobs" (id, queue, kind, payload, priority, run_at, attempt, max_attempts,
        weight, fence, batch_id, unique_key, group_key, errors, metadata,
        created_at) overriding system value
      select d.job_id, d.queue, d.kind, d.payload, d.priority, case when exists (
          select from "queue_holds" as h
          where h.queue = $4::text
            and h.group_key = d.group_key and h.job_id = d.job_id and h.until = 'infinity'
        ) then d.run_at else statement_timestamp() end, 0, d.max_attempts,
        d.weight, d.fence, d.batch_id, d.unique_key, d.group_key, d.errors, d.metadata,
        d.created_at
      from discarded as d order by d.queue, d.kind, d.unique_key, d.job_id
      on conflict do nothing
      returning id, queue, group_key, run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from redriven as g
        where g.group_key is not null and g.run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    ),
    unblocked as (
      delete from "queue_holds" as h using redriven as u
      where h.queue = $5::text
        and h.group_key = u.group_key and h.job_id = u.id and h.until = 'infinity'
    ),
    removed as (
      delete from "queue_results" as r
      where r.queue = $6 and (r.job_id, r.queue) in (
        select id, queue from redriven)
    )
    select (select count(*) from redriven)::float8 as redriven,
      (select count(*) from discarded)::float8 as discarded
-- $1 = 42
-- $2 = "mail"
-- $3 = null
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "mail"
