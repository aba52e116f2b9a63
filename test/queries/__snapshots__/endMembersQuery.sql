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
    )
    select (select count(*) from asked)::float8 as asked,
      (
        select count(pg_notify($5::text, case when q.due then $6::text else $7 end))
        from (select distinct due from asked) as q
      ) as told
-- $1 = "{42}"
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "queue_wake_queue_jobs"
-- $6 = "mail"
-- $7 = ""
