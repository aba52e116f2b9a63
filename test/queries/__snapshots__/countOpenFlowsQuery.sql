    with recursive live as (
      (
        select j.batch_id as id, 1 as place from "queue_jobs" as j
        where j.batch_id is not null order by j.batch_id limit 1
      )
      union all
      select (
          select j.batch_id from "queue_jobs" as j where j.batch_id > l.id order by j.batch_id limit 1
        ), l.place + 1
      from live as l where l.id is not null and l.place < $1::int4
    ),
    opened as materialized (
      select b.id, b.flow_id, b.created_at, b.waiting
      from live as l join "queue_batches" as b on b.id = l.id where b.ended_at is null
    ),
    waits as materialized (
      select w.job_id, w.queue from opened as o join "queue_waits" as w on w.batch_id = o.id
      where w.policy in ('run', 'cancel') or o.waiting is not null
      limit $2::int4
    )
    select count(distinct o.flow_id)::float8 as flows,
      date_part('epoch',
        statement_timestamp() - min(o.created_at) filter (where o.flow_id is not null)) * 1000 as oldest_ms,
      (select count(l.id) from live as l)::float8 as batches,
      (select count(*) from waits)::float8 as waits,
      (select count(*) from (select distinct w.job_id, w.queue from waits as w) as w)::float8 as waiting
    from opened as o
-- $1 = 10000
-- $2 = 10000
