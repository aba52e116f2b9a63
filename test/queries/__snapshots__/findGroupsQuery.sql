    select g.group_key, h.running, h.blocked_by,
      date_part('epoch', nullif(nullif(g.ready_at, 'infinity'), '-infinity')) * 1000 as ready_at,
      case
        when g.ready_at = 'infinity' then 'idle'
        when g.ready_at <= statement_timestamp() then 'ready'
        else 'waiting'
      end as ready
    from (
      select g.group_key, g.ready_at from "queue_groups" as g
      where g.queue = $1 and g.group_key > $2 order by g.group_key limit $3
    ) as g
    cross join lateral (
      select count(*) filter (where exists (
          select from "queue_jobs" as j
          where j.queue = $4 and j.id = h.job_id
            and j.worker_id in (select w.id from "queue_workers" as w)
        ))::float8 as running,
        min(h.job_id) filter (where h.until = 'infinity') as blocked_by
      from "queue_holds" as h where h.queue = $5 and h.group_key = g.group_key
    ) as h
    order by g.group_key
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 51
-- $4 = "mail"
-- $5 = "mail"
