    with table_size as materialized (
      select c.relkind = 'r' and pg_relation_size(c.oid) <= $1::int8 as small
      from pg_class as c where c.oid = $2::text::regclass
    )
    select queue, priority, date_part('epoch', run_at) * 1000 as run_at, id, overlooked, place
    from (
      select row_number() over () as place, s.*
      from jsonb_to_recordset($3::text::jsonb)
        as i(queue text, priority int2, after timestamptz, after_id int8, floor timestamptz,
          "end" timestamptz)
      cross join lateral (
        select j.queue, j.priority, j.run_at, j.id,
          (j.kind in (select jsonb_array_elements_text($4::text::jsonb))) is true and case when j.worker_id is null then j.run_at < i.floor
            else j.worker_id <> $5::int8 
              and (j.worker_id in (select w.id from "queue_workers" as w)) is false
            end as overlooked
        from "queue_jobs" as j
        where j.queue = $6::text and j.priority = i.priority
          and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
          and (j.run_at, j.id) > (i.after, i.after_id) and j.run_at <= i."end"
          and j.run_at <= statement_timestamp()
          and (select t.small from table_size as t)
        order by j.run_at, j.id limit (select $7::int8)
      ) as s
      limit (select $8::int8)
    ) as seen
    where overlooked or place = $9::int8
    union all
    select null, null, null, null, null, null where (select t.small from table_size as t) is not true
-- $1 = 524288
-- $2 = "\"queue_jobs\""
-- $3 = "[{\"queue\":\"mail\",\"priority\":0,\"after\":\"-infinity\",\"after_id\":0,\"floor\":\"2024-02-29T12:34:56.789000Z\",\"end\":\"2024-02-29T12:34:57.789000Z\"},{\"queue\":\"mail\",\"priority\":1,\"after\":\"-infinity\",\"after_id\":0,\"floor\":\"2024-02-29T12:34:56.789000Z\",\"end\":\"2024-02-29T12:34:57.789000Z\"}]"
-- $4 = "[\"mail\"]"
-- $5 = 42
-- $6 = "mail"
-- $7 = 2000
-- $8 = 2000
-- $9 = 2000
