    with due as (
      select j.id, j.bytes, j.last, j.silent, j.proven
      from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c cross join jsonb_to_recordset($4::text::jsonb)
        as band(priority int2, floor timestamptz)
      cross join lateral (
        select j.id, pg_column_size(case when pg_column_compression(j.payload) is null then j.payload
        else j.payload #> '{}' end) as bytes, j.attempt + 1 = j.max_attempts as last, case when j.attempt + 1 between 2 and j.max_attempts
            then j.attempt + 1 - 1 - case when (j.errors -> -1 -> 'attempt')::int4 < j.attempt + 1 then (j.errors -> -1 -> 'attempt')::int4 else 0 end else 0 end as silent,
          true as proven from "queue_jobs" as j
        where j.queue = $5 and j.priority = band.priority
          and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
          and j.run_at >= band.floor and j.run_at <= statement_timestamp()
          and j.worker_id is null
          and (j.kind in (select jsonb_array_elements_text($6::text::jsonb))) is true
        order by j.run_at, j.id limit (select $7::int8)
        for no key update skip locked
      ) as j
      limit $8
    ),
    within as (
      select id, later from (
        select id, sum(bytes) over (rows between unbounded preceding and 1 preceding) as before, (last or silent > 0) and not (
          (proven and silent <= (not last)::int4) and coalesce(bool_and((proven and silent <= (not last)::int4)) over (rows between unbounded preceding and 1 preceding), true)
          and count(*) over (rows between unbounded preceding and 1 preceding) < $9::int8) as later from due
      ) as d
      where before is null or before < $10::int8
    ),
    claimed as (
    update "queue_jobs" as j
    set worker_id = $11::int8, claimed_at = greatest((array[statement_timestamp()])[case
        when j.id in (select id from within where later) then 2 else 1
      end]), attempt = j.attempt + 1, fence = j.fence + 1, waiting_key = null
    where j.queue = $12 and j.id = any(array(select id from within))
    returning j.id, j.kind, j.payload, j.priority, j.claimed_at, j.attempt, j.max_attempts, j.fence,
      j.unique_key, j.errors, j.metadata, j.run_at, j.created_at, j.cancel_reason
    )
    select j.id, j.kind, j.payload, pg_column_size(case when pg_column_compression(j.payload) is null then j.payload
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
-- $6 = "[\"mail\"]"
-- $7 = 10
-- $8 = 10
-- $9 = 3
-- $10 = 8388608
-- $11 = 42
-- $12 = "mail"
