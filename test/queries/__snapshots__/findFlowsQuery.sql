    with recursive listed as (
      (
        select b.flow_id as id, 1 as place from "queue_batches" as b
        where b.flow_id is not null
        order by b.flow_id desc limit 1
      )
      union all
      select (
          select b.flow_id from "queue_batches" as b where b.flow_id < l.id order by b.flow_id desc limit 1
        ), l.place + 1
      from listed as l where l.id is not null and l.place < $1::int4
    ),
    found as materialized (
      select l.id, c.* from listed as l cross join lateral (
        select sum(b.total)::float8 as total, sum(b.pending)::float8 as pending,
          sum(b.failed)::float8 as failed, min(b.cancel_reason) as cancel_reason,
          min(b.created_at) as created_at, max(b.ended_at) as ended_at,
          bool_and(b.ended_at is not null) as ended
        from "queue_batches" as b where b.flow_id = l.id
      ) as c
      where l.id is not null
      limit $2::int4
    )
    select s.searched_to, f.id, f.total, f.pending, f.failed, f.cancel_reason,
      date_part('epoch', f.created_at) * 1000 as created_at,
      case when f.ended then date_part('epoch', f.ended_at) * 1000 end as ended_at,
      (
        select jsonb_agg(k.kind order by k.first) from (
          select m.kind, min(m.id) as first from (
            select b.id, coalesce(
            (select j.kind from "queue_jobs" as j
              where j.batch_id between b.id and b.id order by j.batch_id limit 1),
            (select r.kind from "queue_results" as r
              where r.batch_id between b.id and b.id order by r.batch_id limit 1)) as kind
            from "queue_batches" as b where b.flow_id = f.id order by b.id limit $3::int4
          ) as m where m.kind is not null group by m.kind
        ) as k
      ) as kinds
    from (
      select case when (select count(*) from found) < $4::int4 then (
          select min(l.id) from listed as l having count(l.id) = $5::int4
        ) end as searched_to
    ) as s left join found as f on true
    order by f.id desc
-- $1 = 10000
-- $2 = 51
-- $3 = 20
-- $4 = 51
-- $5 = 10000
