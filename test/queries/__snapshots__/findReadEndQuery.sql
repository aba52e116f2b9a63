    select j.id, trunc(extract(epoch from j.run_at) * 1000000)::text as run_us from (
        (select j.* from jsonb_to_recordset($1::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
            select j.run_at, j.id from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp()
              and j.run_at >= (to_timestamp($2::text::float8)
                + $3::text::float8 * interval '1 microsecond') and (j.run_at, j.id) > ((to_timestamp($4::text::float8)
                + $5::text::float8 * interval '1 microsecond'), $6::int8)
            order by j.run_at, j.id limit $7 offset $8
        ) as j)
        union all
        (select j.* from jsonb_to_recordset($9::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
            select j.run_at, j.id from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key = b."group" and j.run_at <= statement_timestamp()
              and j.run_at >= (to_timestamp($10::text::float8)
                + $11::text::float8 * interval '1 microsecond') and (j.run_at, j.id) > ((to_timestamp($12::text::float8)
                + $13::text::float8 * interval '1 microsecond'), $14::int8)
            order by j.run_at, j.id limit $15 offset $16
        ) as j)
    ) as j
    order by j.run_at, j.id limit 1
-- $1 = "[{\"queue\":\"mail\",\"group\":null,\"priority\":5}]"
-- $2 = "1709208000"
-- $3 = "2096789000"
-- $4 = "1709208000"
-- $5 = "2096789000"
-- $6 = 42
-- $7 = 100
-- $8 = 99
-- $9 = "[{\"queue\":\"mail\",\"group\":\"mail\",\"priority\":5}]"
-- $10 = "1709208000"
-- $11 = "2096789000"
-- $12 = "1709208000"
-- $13 = "2096789000"
-- $14 = 42
-- $15 = 100
-- $16 = 99
