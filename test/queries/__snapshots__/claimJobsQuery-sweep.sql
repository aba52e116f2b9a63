    with due as (
      select j.id
      from jsonb_to_recordset($1::text::jsonb)
        as band(priority int2, floor timestamptz)
      cross join lateral (
        select j.id from "queue_jobs" as j
        where j.queue = $2 and j.priority = band.priority and j.priority >= 0
          and j.run_at >= band.floor and j.run_at <= statement_timestamp()
          and (j.worker_id is null or (j.worker_id is distinct from $3::int8
            and j.worker_id not in (select w.id from "queue_workers" as w)))
          and j.kind = any(array(select jsonb_array_elements_text($4::text::jsonb)))
        order by j.run_at, j.id limit (select $5::int8)
        for no key update skip locked
      ) as j
      limit $6
    )
    update "queue_jobs" as j
    set attempt = j.attempt + 1, fence = j.fence + 1, worker_id = $7::int8, claimed_at = statement_timestamp()
    where j.queue = $8 and j.id = any(array(select id from due))
    returning j.id, j.queue, j.kind, j.payload, j.priority, j.attempt, j.max_attempts, j.fence, j.unique_key, j.errors,
      j.metadata, (extract(epoch from j.run_at) * 1000)::float8 as run_at, (extract(epoch from j.created_at) * 1000)::float8 as created_at,
      (extract(epoch from j.claimed_at) * 1000)::float8 as claimed_at
-- $1 = "[{\"priority\":0,\"floor\":\"-infinity\"},{\"priority\":1,\"floor\":\"-infinity\"},{\"priority\":2,\"floor\":\"-infinity\"},{\"priority\":3,\"floor\":\"-infinity\"},{\"priority\":4,\"floor\":\"-infinity\"},{\"priority\":5,\"floor\":\"2024-02-29T12:34:56.789Z\"},{\"priority\":6,\"floor\":\"-infinity\"},{\"priority\":7,\"floor\":\"-infinity\"},{\"priority\":8,\"floor\":\"-infinity\"},{\"priority\":9,\"floor\":\"-infinity\"}]"
-- $2 = "mail"
-- $3 = 42
-- $4 = "[\"mail\"]"
-- $5 = 10
-- $6 = 10
-- $7 = 42
-- $8 = "mail"
