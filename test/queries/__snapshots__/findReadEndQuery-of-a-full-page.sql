    select j.id, (extract(epoch from j.run_at) * 1000000)::float8 as run_us from (
        (select j.* from jsonb_to_recordset($1::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
            select j.run_at, j.id from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key is null and j.run_at <= statement_timestamp()
              and j.run_at >= to_timestamp($2::text::float8 / 1000000) and (j.run_at, j.id) > (to_timestamp($3::text::float8 / 1000000), $4::int8) and j.run_at <= to_timestamp($5::text::float8 / 1000000) and (j.run_at, j.id) <= (to_timestamp($6::text::float8 / 1000000), $7::int8)
            order by j.run_at, j.id limit $8 offset $9
        ) as j)
        union all
        (select j.* from jsonb_to_recordset($10::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
            select j.run_at, j.id from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key = b."group" and j.run_at <= statement_timestamp()
              and j.run_at >= to_timestamp($11::text::float8 / 1000000) and (j.run_at, j.id) > (to_timestamp($12::text::float8 / 1000000), $13::int8) and j.run_at <= to_timestamp($14::text::float8 / 1000000) and (j.run_at, j.id) <= (to_timestamp($15::text::float8 / 1000000), $16::int8)
            order by j.run_at, j.id limit $17 offset $18
        ) as j)
    ) as j
    order by j.run_at, j.id limit 1
-- $1 = "[{\"queue\":\"mail\",\"group\":null,\"priority\":5}]"
-- $2 = "1709210096789000"
-- $3 = "1709210096789000"
-- $4 = 42
-- $5 = "1709210096789000"
-- $6 = "1709210096789000"
-- $7 = 42
-- $8 = 100
-- $9 = 99
-- $10 = "[{\"queue\":\"mail\",\"group\":\"mail\",\"priority\":5}]"
-- $11 = "1709210096789000"
-- $12 = "1709210096789000"
-- $13 = 42
-- $14 = "1709210096789000"
-- $15 = "1709210096789000"
-- $16 = 42
-- $17 = 100
-- $18 = 99
