    with soonest as materialized (
      select b.* from (
        (select b.queue, b."group", b.priority, j.run_at, j.id from jsonb_to_recordset($1::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
          select j.* from (
            select j.* from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp()
              and j.run_at >= (to_timestamp($2::text::float8)
                + $3::text::float8 * interval '1 microsecond') and (j.run_at, j.id) > ((to_timestamp($4::text::float8)
                + $5::text::float8 * interval '1 microsecond'), $6::int8)
            order by j.run_at, j.id limit $7
          ) as j
          where j.kind = $8 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $9 order by j.run_at, j.id limit $10
        ) as j)
        union all
        (select b.queue, b."group", b.priority, j.run_at, j.id from jsonb_to_recordset($11::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
          select j.* from (
            select j.* from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key = b."group" and j.run_at <= statement_timestamp()
              and j.run_at >= (to_timestamp($12::text::float8)
                + $13::text::float8 * interval '1 microsecond') and (j.run_at, j.id) > ((to_timestamp($14::text::float8)
                + $15::text::float8 * interval '1 microsecond'), $16::int8)
            order by j.run_at, j.id limit $17
          ) as j
          where j.kind = $18 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $19 order by j.run_at, j.id limit $20
        ) as j)
      ) as b
      order by b.run_at, b.id limit $21
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
          then left(j.payload::text, $22) end as payload,
        true as payload_kept,
        left(j.errors -> -1 ->> 'name', 100) as error_name,
        left(j.errors -> -1 ->> 'message', 300) as error, trunc(extract(epoch from j.run_at) * 1000000)::text as run_us from (
      select * from (
        (select j.* from (select b.* from soonest as b where b."group" is null) as b
        cross join lateral (
          select j.* from (
            select j.* from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp()
              and j.run_at >= (to_timestamp($23::text::float8)
                + $24::text::float8 * interval '1 microsecond') and (j.run_at, j.id) > ((to_timestamp($25::text::float8)
                + $26::text::float8 * interval '1 microsecond'), $27::int8)
              and j.run_at <= coalesce((
                select b.run_at from soonest as b order by b.run_at, b.id offset $28 limit 1
              ), 'infinity')
            order by j.run_at, j.id limit $29
          ) as j
          where j.kind = $30 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $31 order by j.run_at, j.id limit $32
        ) as j)
        union all
        (select j.* from (select b.* from soonest as b where b."group" is not null) as b
        cross join lateral (
          select j.* from (
            select j.* from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key = b."group" and j.run_at <= statement_timestamp()
              and j.run_at >= (to_timestamp($33::text::float8)
                + $34::text::float8 * interval '1 microsecond') and (j.run_at, j.id) > ((to_timestamp($35::text::float8)
                + $36::text::float8 * interval '1 microsecond'), $37::int8)
              and j.run_at <= coalesce((
                select b.run_at from soonest as b order by b.run_at, b.id offset $38 limit 1
              ), 'infinity')
            order by j.run_at, j.id limit $39
          ) as j
          where j.kind = $40 and case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end = $41 order by j.run_at, j.id limit $42
        ) as j)
      ) as j
      order by j.run_at, j.id limit $43
    ) as j
    order by j.run_at, j.id
-- $1 = "[{\"queue\":\"mail\",\"group\":null,\"priority\":5}]"
-- $2 = "1709208000"
-- $3 = "2096789000"
-- $4 = "1709208000"
-- $5 = "2096789000"
-- $6 = 42
-- $7 = 100
-- $8 = "mail"
-- $9 = "due"
-- $10 = 1
-- $11 = "[{\"queue\":\"mail\",\"group\":\"mail\",\"priority\":5}]"
-- $12 = "1709208000"
-- $13 = "2096789000"
-- $14 = "1709208000"
-- $15 = "2096789000"
-- $16 = 42
-- $17 = 100
-- $18 = "mail"
-- $19 = "due"
-- $20 = 1
-- $21 = 10
-- $22 = 240
-- $23 = "1709208000"
-- $24 = "2096789000"
-- $25 = "1709208000"
-- $26 = "2096789000"
-- $27 = 42
-- $28 = 9
-- $29 = 100
-- $30 = "mail"
-- $31 = "due"
-- $32 = 10
-- $33 = "1709208000"
-- $34 = "2096789000"
-- $35 = "1709208000"
-- $36 = "2096789000"
-- $37 = 42
-- $38 = 9
-- $39 = 100
-- $40 = "mail"
-- $41 = "due"
-- $42 = 10
-- $43 = 10
