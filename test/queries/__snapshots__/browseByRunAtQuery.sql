    with soonest as materialized (
      select b.* from (
        (select b.queue, b."group", b.priority, j.run_at, j.id from jsonb_to_recordset($1::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
          select j.* from (
            select j.* from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key is null and j.run_at <= statement_timestamp()
              and j.run_at >= to_timestamp($2::text::float8 / 1000000) and (j.run_at, j.id) > (to_timestamp($3::text::float8 / 1000000), $4::int8)
            order by j.run_at, j.id limit $5
          ) as j
          where j.kind = $6 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $7 order by j.run_at, j.id limit $8
        ) as j)
        union all
        (select b.queue, b."group", b.priority, j.run_at, j.id from jsonb_to_recordset($9::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
          select j.* from (
            select j.* from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key = b."group" and j.run_at <= statement_timestamp()
              and j.run_at >= to_timestamp($10::text::float8 / 1000000) and (j.run_at, j.id) > (to_timestamp($11::text::float8 / 1000000), $12::int8)
            order by j.run_at, j.id limit $13
          ) as j
          where j.kind = $14 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $15 order by j.run_at, j.id limit $16
        ) as j)
      ) as b
      order by b.run_at, b.id limit $17
    )
    select j.id, j.queue, j.kind,
        case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end as state,
        j.attempt, j.max_attempts, j.priority, j.unique_key, j.group_key, j.worker_id,
        j.cancel_reason is not null as cancelling,
        date_part('epoch', j.created_at) * 1000 as created_at,
        date_part('epoch', nullif(j.run_at, 'infinity')) * 1000 as run_at,
        date_part('epoch', j.claimed_at) * 1000 as claimed_at,
        null::float8 as finished_at,
        case when pg_column_size(j.payload) <= 262144
          then left(j.payload::text, $18) end as payload,
        true as payload_kept,
        left(j.errors -> -1 ->> 'name', 100) as error_name,
        left(j.errors -> -1 ->> 'message', 300) as error, (extract(epoch from j.run_at) * 1000000)::float8 as run_us from (
      select * from (
        (select j.* from (select b.* from soonest as b where b."group" is null) as b
        cross join lateral (
          select j.* from (
            select j.* from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key is null and j.run_at <= statement_timestamp()
              and j.run_at >= to_timestamp($19::text::float8 / 1000000) and (j.run_at, j.id) > (to_timestamp($20::text::float8 / 1000000), $21::int8)
              and j.run_at <= coalesce((
                select b.run_at from soonest as b order by b.run_at, b.id offset $22 limit 1
              ), 'infinity')
            order by j.run_at, j.id limit $23
          ) as j
          where j.kind = $24 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $25 order by j.run_at, j.id limit $26
        ) as j)
        union all
        (select j.* from (select b.* from soonest as b where b."group" is not null) as b
        cross join lateral (
          select j.* from (
            select j.* from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key = b."group" and j.run_at <= statement_timestamp()
              and j.run_at >= to_timestamp($27::text::float8 / 1000000) and (j.run_at, j.id) > (to_timestamp($28::text::float8 / 1000000), $29::int8)
              and j.run_at <= coalesce((
                select b.run_at from soonest as b order by b.run_at, b.id offset $30 limit 1
              ), 'infinity')
            order by j.run_at, j.id limit $31
          ) as j
          where j.kind = $32 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $33 order by j.run_at, j.id limit $34
        ) as j)
      ) as j
      order by j.run_at, j.id limit $35
    ) as j
    order by j.run_at, j.id
-- $1 = "[{\"queue\":\"mail\",\"group\":null,\"priority\":5}]"
-- $2 = "1709210096789000"
-- $3 = "1709210096789000"
-- $4 = 42
-- $5 = 100
-- $6 = "mail"
-- $7 = "due"
-- $8 = 1
-- $9 = "[{\"queue\":\"mail\",\"group\":\"mail\",\"priority\":5}]"
-- $10 = "1709210096789000"
-- $11 = "1709210096789000"
-- $12 = 42
-- $13 = 100
-- $14 = "mail"
-- $15 = "due"
-- $16 = 1
-- $17 = 10
-- $18 = 240
-- $19 = "1709210096789000"
-- $20 = "1709210096789000"
-- $21 = 42
-- $22 = 9
-- $23 = 100
-- $24 = "mail"
-- $25 = "due"
-- $26 = 10
-- $27 = "1709210096789000"
-- $28 = "1709210096789000"
-- $29 = 42
-- $30 = 9
-- $31 = 100
-- $32 = "mail"
-- $33 = "due"
-- $34 = 10
-- $35 = 10
