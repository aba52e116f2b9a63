    with waits as materialized (
      select w.batch_id, w.job_id, w.policy from "queue_waits" as w
      where w.job_id = any($1::text::int8[]) and w.queue = $2
    ),
    seen as materialized (
      select b.id, b.xmin::text as version from "queue_batches" as b
      where b.id = any(array(select batch_id from waits))
    ),
    locked as materialized (
      select b.id, b.ended_at is not null as ended,
        (b.id, b.xmin::text) in (select id, version from seen) and b.failed > 0
        and not exists (select from "queue_tallies" as t where t.batch_id = b.id and t.failed < 0) as failing,
        b.waiting
      from "queue_batches" as b cross join set_config('lock_timeout', $3::text, true) as patience
      where b.id = any(array(select id from seen))
      order by b.id for no key update of b skip locked
    ),
    judged as materialized (
      select w.job_id as id,
        bool_or(w.policy = 'cancel' and coalesce(l.failing, false)) as unwanted,
        bool_and(coalesce(l.ended, false)) filter (where w.policy in ('run', 'cancel')) as before,
        bool_or(coalesce(l.failing and not l.ended and l.waiting = 'failure', false)) as at_once,
        count(*) filter (
          where w.policy in ('parent', 'detached')
            and (l.id is null or (not l.ended and l.waiting is not null))
        ) as open
      from waits as w full join locked as l on l.id = w.batch_id
      group by w.job_id
    ),
    free as materialized (
      select j.id, j.unwanted from (select * from judged order by id) as i
      cross join lateral (
        select j.id, j.blockers > 0 and i.unwanted as unwanted from "queue_jobs" as j
        where j.queue = $4 and j.id = i.id and j.worker_id is null and j.blockers <> 0
        and j.run_at > statement_timestamp()
          and case when j.blockers > 0 then i.unwanted or coalesce(i.before, true)
            else i.at_once or -j.blockers > i.open end
        for no key update skip locked
      ) as j
    ),
    woken as (
      update "queue_jobs" as j
      set blockers = 0, run_at = statement_timestamp(),
        cancel_reason = case when (j.id in (select id from free where unwanted)) is true
          then coalesce(j.cancel_reason, $5) else j.cancel_reason end
      where j.queue = $6 and j.id = any(array(select id from free))
      returning j.queue, j.run_at, j.group_key
    ),
    told as (
      update "queue_batches" as b set waiting = 'end'
      where b.id = any(array(
        select l.id from locked as l
        where l.failing and not l.ended and l.waiting = 'failure' and (l.id in (
          select w.batch_id from waits as w
          where w.policy in ('parent', 'detached') and (w.job_id in (select id from free)) is true
        )) is true
      ))
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from woken as g
        where g.group_key is not null and g.run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select (select count(*) from woken)::float8 as woken,
      (
        select count(pg_notify($7::text, q.queue)) from (select distinct queue from woken) as q
      ) as told
-- $1 = "{42}"
-- $2 = "mail"
-- $3 = "100ms"
-- $4 = "mail"
-- $5 = "A job that it waited for was discarded or cancelled"
-- $6 = "mail"
-- $7 = "queue_wake_queue_jobs"
