    with wanted as materialized (
      select array(select unnest($1::text::int8[])) as ids
    ),
    unwanted as materialized (
      select b.id, b.cancel_reason as reason from "queue_batches" as b
      where b.cancel_reason is not null and b.ended_at is null and b.id = any(array(
        select j.batch_id from wanted join "queue_jobs" as j on j.queue = $2 and j.id = any(wanted.ids)
      ))
      order by b.id for share of b skip locked
    ),
    free as materialized (
      select j.id, b.reason from wanted
      join "queue_jobs" as j on j.queue = $3 and j.id = any(wanted.ids)
      join unwanted as b on b.id = j.batch_id
      where j.cancel_reason is null
      order by j.id for no key update of j skip locked
    ),
    asked as (
      update "queue_jobs" as j
      set cancel_reason = i.reason, blockers = case when j.worker_id is not null or j.blockers > 0 then j.blockers end,
        run_at = case when j.worker_id is null then least(j.run_at, statement_timestamp()) else j.run_at end
      from free as i
      where j.queue = $4 and j.id = i.id
      returning j.queue, j.id, j.run_at, j.group_key, j.worker_id is null as due
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from asked as g
        where g.group_key is not null and g.run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    ),
    unblocked as (
      delete from "queue_holds" as h using asked as u
      where h.queue = $5::text
        and h.group_key = u.group_key and h.job_id = u.id and h.until < 'infinity'
    )
    select (select count(*) from asked)::float8 as asked,
      (
        select count(pg_notify($6::text, case when q.due then $7::text else $8 end))
        from (select distinct due from asked) as q
      ) as told
-- $1 = "{42}"
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "queue_wake_queue_jobs"
-- $7 = "mail"
-- $8 = ""
