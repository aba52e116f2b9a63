    with stale as materialized (
      select h.ctid as at from "queue_holds" as h
      where h.queue = $1 and h.worker_id is null and h.until < 'infinity' and (
        select j.id from "queue_jobs" as j where j.queue = $2 and j.id = h.job_id
      ) is null
      for update of h skip locked
    ),
    removed as (
      delete from "queue_holds" as h
      where h.queue = $3 and h.ctid = any(array(select at from stale))
      returning h.group_key
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select $4::text as queue, statement_timestamp() as due_at, r.group_key from removed as r
        union
        select $5::text, statement_timestamp(), g.group_key
        from "queue_groups" as g cross join unnest(g.held) as h(job_id)
        cross join lateral (
          select from "queue_jobs" as j
          where j.queue = $6 and j.id = h.job_id and j.worker_id is not null and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
          offset 0
        ) as j
        where g.queue = $7
        union
        select $8::text, statement_timestamp(), h.group_key from "queue_holds" as h
        where h.queue = $9 and not (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w))
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
      returning cardinality(group_keys) as groups
    )
    select coalesce(sum(groups), 0)::float8 as noted from noted
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "mail"
