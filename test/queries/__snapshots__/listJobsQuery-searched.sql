    with unsearched as materialized (
      select i.id from ((
        select j.id as id from "queue_jobs" as j where true
        order by j.id desc limit $1::int8
      ) union all (
        select r.job_id as id from "queue_results" as r where true
        order by r.job_id desc limit $2::int8
      )) as i
      order by i.id desc offset $3::int8 limit 1
    )
    select u.unsearched, f.* from (select (select id from unsearched) as unsearched) as u
    left join (
    select * from (
      (
      select j.id, j.queue, j.kind, case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end as state, j.payload, null::jsonb as output, j.errors,
        j.attempt, j.max_attempts, j.priority, j.unique_key, j.group_key, j.metadata, j.worker_id,
        date_part('epoch', j.created_at) * 1000 as created_at, date_part('epoch', j.run_at) * 1000 as run_at,
        date_part('epoch', j.claimed_at) * 1000 as claimed_at, null::float8 as finished_at,
        j.progress, j.cancel_reason, true as payload_kept
      from (
        select j.* from "queue_jobs" as j where true and j.id > coalesce((select id from unsearched), 0)
        order by j.id desc limit $4::int8
      ) as j where j.created_at >= $5::timestamptz and j.created_at < $6::timestamptz and j.payload @> $7::text::jsonb order by j.id desc limit $8) union all (
      select r.job_id as id, r.queue, r.kind, r.state, r.payload, r.output, r.errors,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.metadata, r.worker_id,
        date_part('epoch', r.created_at) * 1000 as created_at, date_part('epoch', r.run_at) * 1000 as run_at,
        date_part('epoch', r.claimed_at) * 1000 as claimed_at, date_part('epoch', r.finished_at) * 1000 as finished_at,
        null::jsonb as progress, null::text as cancel_reason,
        r.payload is not null as payload_kept
      from (
        select r.* from "queue_results" as r where true and r.job_id > coalesce((select id from unsearched), 0)
        order by r.job_id desc limit $9::int8
      ) as r where r.created_at >= $10::timestamptz and r.created_at < $11::timestamptz and r.payload @> $12::text::jsonb order by r.job_id desc limit $13)
    ) as record
    order by id desc limit $14
    ) as f on true
    order by f.id desc
-- $1 = 100001
-- $2 = 100001
-- $3 = 100000
-- $4 = 100000
-- $5 = "2024-02-29T12:34:56.789Z"
-- $6 = "2024-02-29T12:34:56.789Z"
-- $7 = "{\"text\":\"mail\"}"
-- $8 = 51
-- $9 = 100000
-- $10 = "2024-02-29T12:34:56.789Z"
-- $11 = "2024-02-29T12:34:56.789Z"
-- $12 = "{\"text\":\"mail\"}"
-- $13 = 51
-- $14 = 51
