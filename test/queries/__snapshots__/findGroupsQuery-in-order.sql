    select g.group_key, r.running + h.going_on as running, h.blocked_by, h.retries,
      date_part('epoch', nullif(nullif(g.ready_at, 'infinity'), '-infinity')) * 1000 as ready_at,
      case
        when g.ready_at = 'infinity' then 'idle'
        when g.ready_at <= statement_timestamp() then 'ready'
        else 'waiting'
      end as turn,
      coalesce((
        select l.concurrency from "queue_limits" as l
        where l.queue = $1 and l.kind = '' and l.group_key = g.group_key
      ), (
        select l.concurrency from "queue_limits" as l
        where l.queue = $2 and l.kind = '' and l.group_key = '*'
      )) as concurrency,
      coalesce((
        select l.rate_limit from "queue_limits" as l
        where l.queue = $3 and l.kind = '' and l.group_key = g.group_key
      ), (
        select l.rate_limit from "queue_limits" as l
        where l.queue = $4 and l.kind = '' and l.group_key = '*'
      )) is not null as has_rate,
      (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j where j.queue = $5 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $6 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $7 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        ) as due,
      exists (
              select from (
            select h.id, h.at from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $8 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h where h.due
            union all
            select j.id, j.at from generate_series(0, 9) as band(priority)
            cross join lateral (
              select j.id, j.ctid as at from "queue_jobs" as j
              where j.queue = $9 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
              order by j.run_at, j.id limit 1 + 16
            ) as j
            where (
              select count(*) >= 1 + 100 and count(*) filter (where h.due) < 16 from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $10 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h
            ) and j.id not in (select h.id from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j
              where j.queue = $11 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 1 + 100
            ) as h where h.due)
            limit 1) as k
              join "queue_jobs" as j on j.ctid = k.at and j.queue = $12 and j.id = k.id
              where (j.kind in (select jsonb_array_elements_text($13::text::jsonb))) is true
            ) as served
    from (
      select g.group_key, g.ready_at, g.held from "queue_groups" as g
      where g.queue = $14 and g.group_key > $15 order by g.group_key limit $16
    ) as g
    cross join lateral (
      select count(*) filter (where exists (
          select from "queue_jobs" as j
          where j.queue = $17 and j.id = h.job_id
            and j.worker_id in (select w.id from "queue_workers" as w)
        ))::float8 as running
      from unnest(g.held) as h(job_id)
    ) as r
    cross join lateral (
      select min(h.job_id) filter (where h.until = 'infinity' and h.worker_id is null) as blocked_by,
        (count(h.worker_id) filter (where h.until = 'infinity'))::float8 as going_on,
        count(*) filter (where h.until < 'infinity' and h.until > statement_timestamp()) > 0 as retries
      from "queue_holds" as h
      where h.queue = $18 and h.group_key = g.group_key and (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w))
    ) as h
    order by g.group_key
-- $1 = "mail"
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "mail"
-- $10 = "mail"
-- $11 = "mail"
-- $12 = "mail"
-- $13 = "[\"mail\"]"
-- $14 = "mail"
-- $15 = "mail"
-- $16 = 51
-- $17 = "mail"
-- $18 = "mail"
