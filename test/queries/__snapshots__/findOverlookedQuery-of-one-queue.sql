    select queue, priority, date_part('epoch', run_at) * 1000 as run_at, id, overlooked, place
    from (
      select row_number() over () as place, s.*
      from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
      cross join jsonb_to_recordset($4::text::jsonb)
        as i(queue text, priority int2, after timestamptz, after_id int8, floor timestamptz,
          "end" timestamptz)
      cross join lateral (
        select j.queue, j.priority, j.run_at, j.id,
          (j.kind in (select jsonb_array_elements_text($5::text::jsonb))) is true and case when j.worker_id is null then j.run_at < i.floor
            else j.worker_id <> $6::int8 
              and (j.worker_id in (select w.id from "queue_workers" as w)) is false
            end as overlooked
        from "queue_jobs" as j
        where j.queue = $7::text and j.priority = i.priority
          and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
          and (j.run_at, j.id) > (i.after, i.after_id) and j.run_at <= i."end"
          and j.run_at <= statement_timestamp()
        order by j.run_at, j.id limit (select $8::int8)
      ) as s
      limit $9
    ) as seen
    where overlooked or place = $10::int8
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "[{\"queue\":\"mail\",\"priority\":0,\"after\":\"-infinity\",\"after_id\":0,\"floor\":\"2024-02-29T12:34:56.789000Z\",\"end\":\"2024-02-29T12:34:57.789000Z\"},{\"queue\":\"mail\",\"priority\":1,\"after\":\"-infinity\",\"after_id\":0,\"floor\":\"2024-02-29T12:34:56.789000Z\",\"end\":\"2024-02-29T12:34:57.789000Z\"}]"
-- $5 = "[\"mail\"]"
-- $6 = 42
-- $7 = "mail"
-- $8 = 2000
-- $9 = 2000
-- $10 = 2000
