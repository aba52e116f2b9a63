    select j.id, (extract(epoch from j.run_at) * 1000000)::float8 as run_us from (
        (select j.* from jsonb_to_recordset($1::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
            select j.run_at, j.id from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key is null and j.run_at <= statement_timestamp()
              and j.run_at >= to_timestamp($2::text::float8 / 1000000) and (j.run_at, j.id) > (to_timestamp($3::text::float8 / 1000000), $4::int8)
            order by j.run_at, j.id limit $5 offset $6
        ) as j)
        union all
        (select j.* from jsonb_to_recordset($7::text::jsonb) as b(queue text, "group" text, priority int2)
        cross join lateral (
            select j.run_at, j.id from "queue_jobs" as j
            where j.queue = b.queue and j.priority = b.priority and j.group_key = b."group" and j.run_at <= statement_timestamp()
              and j.run_at >= to_timestamp($8::text::float8 / 1000000) and (j.run_at, j.id) > (to_timestamp($9::text::float8 / 1000000), $10::int8)
            order by j.run_at, j.id limit $11 offset $12
        ) as j)
    ) as j
    order by j.run_at, j.id limit 1
-- $1 = "[{\"queue\":\"mail\",\"group\":null,\"priority\":5}]"
-- $2 = "1709210096789000"
-- $3 = "1709210096789000"
-- $4 = 42
-- $5 = 100
-- $6 = 99
-- $7 = "[{\"queue\":\"mail\",\"group\":\"mail\",\"priority\":5}]"
-- $8 = "1709210096789000"
-- $9 = "1709210096789000"
-- $10 = 42
-- $11 = 100
-- $12 = 99
