    select g.group_key, r.running + h.going_on as running, h.blocked_by,
      date_part('epoch', nullif(nullif(g.ready_at, 'infinity'), '-infinity')) * 1000 as ready_at,
      case
        when g.ready_at = 'infinity' then 'idle'
        when g.ready_at <= statement_timestamp() then 'ready'
        else 'waiting'
      end as ready
    from (
      select g.group_key, g.ready_at, g.held from "queue_groups" as g
      where g.queue = $1 and g.group_key > $2 order by g.group_key limit $3
    ) as g
    cross join lateral (
      select count(*) filter (where exists (
          select from "queue_jobs" as j
          where j.queue = $4 and j.id = h.job_id
            and j.worker_id in (select w.id from "queue_workers" as w)
        ))::float8 as running
      from unnest(g.held) as h(job_id)
    ) as r
    cross join lateral (
      select min(h.job_id) filter (where h.worker_id is null) as blocked_by,
        count(h.worker_id)::float8 as going_on
      from "queue_holds" as h
      where h.queue = $5 and h.group_key = g.group_key and h.until = 'infinity' and (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w))
    ) as h
    order by g.group_key
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 51
-- $4 = "mail"
-- $5 = "mail"
