    select j.id, trunc(extract(epoch from j.run_at) * 1000000)::text as run_us from (
        (select j.* from jsonb_to_recordset($1::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
            select j.run_at, j.id from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp()
              and j.run_at >= (to_timestamp($2::text::float8)
                + $3::text::float8 * interval '1 microsecond') and (j.run_at, j.id) > ((to_timestamp($4::text::float8)
                + $5::text::float8 * interval '1 microsecond'), $6::int8) and j.run_at <= (to_timestamp($7::text::float8)
                + $8::text::float8 * interval '1 microsecond') and (j.run_at, j.id) <= ((to_timestamp($9::text::float8)
                + $10::text::float8 * interval '1 microsecond'), $11::int8)
            order by j.run_at, j.id limit $12 offset $13
        ) as j)
        union all
        (select j.* from jsonb_to_recordset($14::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
            select j.run_at, j.id from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key = b."group" and j.run_at <= statement_timestamp()
              and j.run_at >= (to_timestamp($15::text::float8)
                + $16::text::float8 * interval '1 microsecond') and (j.run_at, j.id) > ((to_timestamp($17::text::float8)
                + $18::text::float8 * interval '1 microsecond'), $19::int8) and j.run_at <= (to_timestamp($20::text::float8)
                + $21::text::float8 * interval '1 microsecond') and (j.run_at, j.id) <= ((to_timestamp($22::text::float8)
                + $23::text::float8 * interval '1 microsecond'), $24::int8)
            order by j.run_at, j.id limit $25 offset $26
        ) as j)
    ) as j
    order by j.run_at, j.id limit 1
-- $1 = "[{\"queue\":\"mail\",\"group\":null,\"priority\":5}]"
-- $2 = "1709208000"
-- $3 = "2096789000"
-- $4 = "1709208000"
-- $5 = "2096789000"
-- $6 = 42
-- $7 = "1709208000"
-- $8 = "2096789000"
-- $9 = "1709208000"
-- $10 = "2096789000"
-- $11 = 42
-- $12 = 100
-- $13 = 99
-- $14 = "[{\"queue\":\"mail\",\"group\":\"mail\",\"priority\":5}]"
-- $15 = "1709208000"
-- $16 = "2096789000"
-- $17 = "1709208000"
-- $18 = "2096789000"
-- $19 = 42
-- $20 = "1709208000"
-- $21 = "2096789000"
-- $22 = "1709208000"
-- $23 = "2096789000"
-- $24 = 42
-- $25 = 100
-- $26 = 99
