    select i.queue, min(date_part('epoch', j.run_at) * 1000) as due_at, date_part('epoch', statement_timestamp()) * 1000 as now
    from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
    cross join jsonb_to_recordset($4::text::jsonb)
      as i(queue text, floor timestamptz)
    cross join generate_series(0, 9) as band(priority)
    left join lateral (
      select j.run_at from "queue_jobs" as j
      where j.queue = i.queue
        and j.priority = band.priority::int2 and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
        and j.run_at >= i.floor
        and j.run_at <= statement_timestamp() + $5::float8 * interval '1 millisecond'
        and j.worker_id is null and (j.kind in (select jsonb_array_elements_text($6::text::jsonb))) is true
      order by j.run_at, j.id limit 1
    ) as j on true
    group by i.queue
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "[{\"queue\":\"mail\",\"floor\":\"2024-02-29T12:34:56.789Z\"},{\"queue\":\"mail, too\",\"floor\":\"-infinity\"}]"
-- $5 = 1600
-- $6 = "[\"mail\"]"
