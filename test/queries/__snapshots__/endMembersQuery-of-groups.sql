    with free as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = any(array(select unnest($2::text::int8[])))
        and j.cancel_reason is null
      order by j.id for no key update skip locked
    ),
    asked as (
      update "queue_jobs" as j
      set cancel_reason = b.cancel_reason, blockers = null,
        run_at = case when j.worker_id is null then least(j.run_at, statement_timestamp()) else j.run_at end
      from "queue_batches" as b
      where j.queue = $3 and j.id = any(array(select id from free)) and b.id = j.batch_id
      returning j.queue, j.run_at, j.group_key, j.worker_id is null as due
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
    )
    select (select count(*) from asked)::float8 as asked,
      (
        select count(pg_notify($4::text, case when q.due then $5::text else $6 end))
        from (select distinct due from asked) as q
      ) as told
-- $1 = "mail"
-- $2 = "{42}"
-- $3 = "mail"
-- $4 = "queue_wake_queue_jobs"
-- $5 = "mail"
-- $6 = ""
