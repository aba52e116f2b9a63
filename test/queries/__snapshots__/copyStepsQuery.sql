    with first as materialized (
      select s.started_at as at from "queue_steps" as s
      where s.job_id = $1::int8 and s.queue = $2 and s.name = $3
    ),
    kept as materialized (
      select s.* from "queue_steps" as s cross join first
      where s.job_id = $4::int8 and s.queue = $5
        and case when s.kind = 'sleep' then coalesce(s.ended_at, s.until) else s.ended_at end <= first.at
        and s.name <> $6 and s.name <> 'undo' and s.name not like 'undo:%'
        and (('undo:' || s.name) in (
          select u.name from "queue_steps" as u where u.job_id = $7::int8 and u.queue = $8
        )) is not true
        and (s.kind <> 'enqueue' or not exists (
          select from "queue_waits" as w
          where w.batch_id = (s.output ->> 'batch')::int8 and w.policy in ('parent', 'detached')
        ) or not exists (
          select from "queue_batches" as b
          where b.id = (s.output ->> 'batch')::int8 and (b.ended_at is null or b.pending > 0)
          union all
          select from "queue_tallies" as t where t.batch_id = (s.output ->> 'batch')::int8
          union all
          select from "queue_results" as r
          where r.batch_id = (s.output ->> 'batch')::int8 and r.finished_at > first.at
        ))
    ),
    copied as (
      insert into "queue_steps" (job_id, queue, name, kind, signal, output, error, attempts, fence, until,
        started_at, ended_at)
      select $9::int8, k.queue, k.name, k.kind, k.signal, k.output, k.error, k.attempts, 0, k.until,
        k.started_at, k.ended_at
      from kept as k
      returning name
    ),
    received as (
      insert into "queue_mailboxes" (job_id, queue, name, sent, received)
      select $10::int8, $11::text, k.signal,
        jsonb_agg(jsonb_build_object('id', k.name, 'value',
          case when k.kind = 'first' then k.output -> 'value' else k.output end) order by k.ended_at, k.name),
        count(*)::int4
      from kept as k where k.signal is not null and k.output is not null
      group by k.signal
    ),
    waited as (
      insert into "queue_waits" (batch_id, job_id, queue, policy)
      select w.batch_id, $12::int8, w.queue, 'forked'
      from "queue_waits" as w join "queue_batches" as b on b.id = w.batch_id
      where w.job_id = $13::int8 and w.queue = $14 and w.policy in ('run', 'cancel', 'forked')
        and b.ended_at is not null
    ),
    marked as (
      update "queue_jobs" as j set fence = j.fence + 1 where j.queue = $15 and j.id = $16::int8
    )
    select exists (select from first) as known, (select count(*) from copied)::float8 as copied
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 42
-- $5 = "mail"
-- $6 = "mail"
-- $7 = 42
-- $8 = "mail"
-- $9 = 43
-- $10 = 43
-- $11 = "mail"
-- $12 = 43
-- $13 = 42
-- $14 = "mail"
-- $15 = "mail"
-- $16 = 43
