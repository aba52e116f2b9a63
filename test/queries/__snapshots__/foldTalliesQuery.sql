    with found as materialized (
      select t.batch_id from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
      cross join unnest($4::text::int8[]) as t(batch_id)
    ),
    seen as materialized (
      select b.id, b.xmin::text as version from "queue_batches" as b
      where b.id = any(array(select batch_id from found))
    ),
    held as materialized (
      select b.id, b.ended_at is null as open,
        (b.id, b.xmin::text) in (select id, version from seen) as is_as_seen
      from "queue_batches" as b cross join set_config('lock_timeout', $5::text, true) as patience
      where b.id = any(array(select batch_id from found))
      order by b.id for no key update of b skip locked
    ),
    locked as materialized (select id, open from held where is_as_seen),
    taken as (
      delete from "queue_tallies" as t where t.batch_id = any(array(select id from locked))
      returning t.batch_id, t.added, t.ended, t.failed, t.cancel_reason
    ),
    sums as materialized (
      select t.batch_id as id, l.open, count(*) as tallies, sum(t.added) as added, sum(t.ended) as ended,
        sum(t.failed) as failed, bool_or(t.failed > 0) as has_failures,
        bool_or(t.failed < 0) as has_returns,
        min(t.cancel_reason) filter (where l.open) as cancel_reason
      from taken as t join locked as l on l.id = t.batch_id group by t.batch_id, l.open
    ),
    counted as (
      update "queue_batches" as b
      set total = b.total + s.added, pending = b.pending + s.added - s.ended, failed = b.failed + s.failed,
        cancel_reason = coalesce(b.cancel_reason, s.cancel_reason),
        ended_at = case when b.pending + s.added - s.ended <= 0 or not s.open
          then coalesce(b.ended_at, statement_timestamp()) end
      from sums as s
      where b.id = any(array(select id from locked)) and b.id = s.id
      returning b.id, s.open and b.pending <= 0 as over,
        s.open and b.failed > 0 and (s.has_failures or b.pending <= 0) as failing,
        b.waiting = 'failure' and (s.has_returns or b.failed - s.failed <= 0) as tells_failure, b.waiting,
        b.pending > 0 and (
          s.cancel_reason is not null or (s.open and s.added > 0 and b.cancel_reason is not null)
        ) as unwanted
    ),
    targets as materialized (
      select w.job_id as id, w.queue,
        count(*) filter (where c.over and w.policy in ('run', 'cancel')) as before,
        count(*) filter (where c.over and w.policy not in ('run', 'cancel')) as beside,
        bool_or(c.failing and w.policy = 'cancel') as unwanted,
        bool_or(c.failing and (w.policy = 'cancel' or c.tells_failure is true)) as at_once
      from counted as c join "queue_waits" as w on w.batch_id = c.id
      where case
        when w.policy = 'run' then c.over
        when w.policy = 'cancel' then c.over or c.failing
        when w.policy = 'forked' then false
        else (c.over and c.waiting is not null) or (c.failing and c.tells_failure) end
      group by w.job_id, w.queue
    ),
    live as materialized (
      select i.id, i.queue, i.before, i.beside, i.unwanted, i.at_once, statement_timestamp() as now
      from targets as i join "queue_jobs" as j on j.queue = i.queue and j.id = i.id
      where i.before + i.beside > 0 or not i.unwanted or j.cancel_reason is null
      order by j.id for no key update of j
    ),
    woken as (
      update "queue_jobs" as j
      set blockers = case when j.blockers > 0 then greatest(j.blockers - i.before, 0)
          when j.blockers < 0 then least(j.blockers + i.beside, 0) else j.blockers end::int4,
        cancel_reason = case when i.unwanted then coalesce(j.cancel_reason, $6)
          else j.cancel_reason end,
        run_at = case
          when coalesce(j.blockers, 0) = 0
            or not (i.at_once or j.blockers between -i.beside and i.before) then j.run_at
          when j.worker_id is null then least(j.run_at, i.now)
          else greatest(i.now, j.claimed_at + interval '1 microsecond') end
      from live as i
      where j.queue = i.queue and j.id = i.id
      returning j.queue, j.run_at, j.group_key, j.run_at <= i.now as due
    )
    select (select coalesce(sum(tallies), 0) from sums)::float8 as tallies,
      (select json_agg(c.id) from counted as c where c.unwanted)::text as unwanted,
      (
        select json_agg(b.id) from "queue_batches" as b
        where b.id = any(array(select batch_id from found)) and b.id not in (select id from locked)
      )::text as busy,
      json_agg(w.queue)::text as woken,
      count(pg_notify($7::text, w.queue)) as told
    from (select distinct queue from woken where due) as w
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "{42}"
-- $5 = "100ms"
-- $6 = "A job that it waited for was discarded or cancelled"
-- $7 = "queue_wake_queue_jobs"
