    select j.id from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
    cross join jsonb_to_recordset($4::text::jsonb)
      as band(priority int2, floor timestamptz, ceiling timestamptz)
    cross join lateral (
      select j.id from "queue_jobs" as j
      where j.queue = $5 and j.priority = band.priority and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
        and j.run_at >= band.floor and j.run_at <= statement_timestamp() and j.run_at < band.ceiling
        and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($6::text::jsonb))) is true
        and (j.id in (select unnest($7::text::int8[]))) is not true
      order by j.run_at, j.id limit (select $8::int8)
    ) as j
    limit $9
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "[{\"priority\":0,\"floor\":\"-infinity\",\"ceiling\":\"infinity\"},{\"priority\":1,\"floor\":\"-infinity\",\"ceiling\":\"infinity\"},{\"priority\":2,\"floor\":\"-infinity\",\"ceiling\":\"infinity\"},{\"priority\":3,\"floor\":\"-infinity\",\"ceiling\":\"infinity\"},{\"priority\":4,\"floor\":\"-infinity\",\"ceiling\":\"infinity\"},{\"priority\":5,\"floor\":\"2024-02-29T12:34:56.789Z\",\"ceiling\":\"infinity\"},{\"priority\":6,\"floor\":\"-infinity\",\"ceiling\":\"infinity\"},{\"priority\":7,\"floor\":\"-infinity\",\"ceiling\":\"infinity\"},{\"priority\":8,\"floor\":\"-infinity\",\"ceiling\":\"infinity\"},{\"priority\":9,\"floor\":\"-infinity\",\"ceiling\":\"infinity\"}]"
-- $5 = "mail"
-- $6 = "[\"mail\"]"
-- $7 = "{42,43}"
-- $8 = 10
-- $9 = 10
