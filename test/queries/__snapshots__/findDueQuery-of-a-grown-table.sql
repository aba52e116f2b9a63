    with table_size as materialized (
      select c.relkind = 'r' and pg_relation_size(c.oid) > $1::int8 as grown
      from pg_class as c where c.oid = $2::text::regclass
    )
    select i.queue, min(date_part('epoch', j.run_at) * 1000) as due_at, date_part('epoch', statement_timestamp()) * 1000 as now, (select t.grown from table_size as t) as grown
    from jsonb_to_recordset($3::text::jsonb)
      as i(queue text, floor timestamptz)
    cross join generate_series(0, 9) as band(priority)
    left join lateral (
      select j.run_at from "queue_jobs" as j
      where j.queue = $4::text
        and j.priority = band.priority::int2 and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
        and j.run_at >= i.floor
        and j.run_at <= statement_timestamp() + $5::float8 * interval '1 millisecond'
        and j.worker_id is null and (j.kind in (select jsonb_array_elements_text($6::text::jsonb))) is true
        and (select t.grown from table_size as t)
      order by j.run_at, j.id limit 1
    ) as j on true
    group by i.queue
-- $1 = 524288
-- $2 = "\"queue_jobs\""
-- $3 = "[{\"queue\":\"mail\",\"floor\":\"2024-02-29T12:34:56.789Z\"}]"
-- $4 = "mail"
-- $5 = 1600
-- $6 = "[\"mail\"]"
