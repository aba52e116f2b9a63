    select e.key, e.value #>> '{}' as value
    from (
      (
        select j.payload from (select j.* from "queue_jobs" as j order by j.id desc limit $1) as j
        where jsonb_typeof(j.payload) = 'object' and pg_column_size(j.payload) <= 8192 and j.kind = $2 limit $3
      )
      union all
      (
        select r.payload from (
          select r.* from "queue_results" as r order by r.job_id desc limit $4
        ) as r
        where jsonb_typeof(r.payload) = 'object' and pg_column_size(r.payload) <= 8192 and r.kind = $5 limit $6
      )
    ) as p
    cross join lateral jsonb_each(p.payload) as e(key, value)
    where jsonb_typeof(e.value) in ('string', 'number', 'boolean') and length(e.value::text) <= 60
      and e.key ~ '^[A-Za-z0-9_$-]{1,60}$'
    group by e.key, e.value
    order by count(*) desc, e.key, e.value limit $7
-- $1 = 100
-- $2 = "mail"
-- $3 = 10
-- $4 = 100
-- $5 = "mail"
-- $6 = 10
-- $7 = 10
