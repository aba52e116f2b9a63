    with due as (
      select j.id, j.bytes
      from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c cross join jsonb_to_recordset($4::text::jsonb)
        as band(priority int2, floor timestamptz)
      cross join lateral (
        select j.id, pg_column_size(case when pg_column_compression(j.payload) is null then j.payload
        else j.payload #> '{}' end) as bytes from "queue_jobs" as j
        where j.queue = $5 and j.priority = band.priority
          and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
          and j.run_at >= band.floor and j.run_at <= statement_timestamp()
          and (j.worker_id is null or (j.worker_id is distinct from $6::int8
            and j.worker_id not in (select w.id from "queue_workers" as w)))
          and not exists (select from "queue_pauses" as p where p.queue = $7)
          and (j.kind in (select jsonb_array_elements_text($8::text::jsonb))) is true
        order by j.run_at, j.id limit (select $9::int8)
        for no key update skip locked
      ) as j
      limit $10
    ),
    within as (
      select id from (
        select id, sum(bytes) over (rows between unbounded preceding and 1 preceding) as before from due
      ) as d
      where before is null or before < $11::int8
    ),
    claimed as (
    update "queue_jobs" as j
    set worker_id = $12::int8, claimed_at = statement_timestamp(), attempt = j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4, fence = j.fence + 1, waiting_key = null
    where j.queue = $13 and j.id = any(array(select id from within))
    returning j.id, j.kind, j.payload, j.priority, j.claimed_at, j.attempt, j.max_attempts, j.fence,
      j.unique_key, j.errors, j.metadata, j.run_at, j.created_at, j.cancel_reason
    )
    select '{"a_key": 0}'::jsonb as a_sample, null::text as a_null, true as a_boolean, j.id, j.kind, j.payload, pg_column_size(case when pg_column_compression(j.payload) is null then j.payload
        else j.payload #> '{}' end) as payload_bytes, j.priority,
      j.claimed_at is not null as begun, j.attempt, j.max_attempts, j.fence, j.unique_key,
      nullif(j.errors, '[]') as errors, nullif(j.metadata, '{}') as metadata,
      date_part('epoch', j.run_at) * 1000 as run_at, date_part('epoch', j.created_at) * 1000 as created_at,
      date_part('epoch', statement_timestamp()) * 1000 as claimed_at,
      j.cancel_reason
    from claimed as j
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "[{\"priority\":0,\"floor\":\"-infinity\"},{\"priority\":1,\"floor\":\"-infinity\"},{\"priority\":2,\"floor\":\"-infinity\"},{\"priority\":3,\"floor\":\"-infinity\"},{\"priority\":4,\"floor\":\"-infinity\"},{\"priority\":5,\"floor\":\"2024-02-29T12:34:56.789Z\"},{\"priority\":6,\"floor\":\"-infinity\"},{\"priority\":7,\"floor\":\"-infinity\"},{\"priority\":8,\"floor\":\"-infinity\"},{\"priority\":9,\"floor\":\"-infinity\"}]"
-- $5 = "mail"
-- $6 = null
-- $7 = "mail"
-- $8 = "[\"mail\"]"
-- $9 = 1
-- $10 = 1
-- $11 = 8388608
-- $12 = null
-- $13 = "mail"
