    with unsearched as materialized (
      select i.id from ((
        select r.job_id as id from "queue_results" as r where r.job_id < $1
        order by r.job_id desc limit $2::int8
      )) as i
      order by i.id desc offset $3::int8 limit 1
    )
    select u.unsearched, f.* from (select (select id from unsearched) as unsearched) as u
    left join (
    select * from (
      (
      select r.job_id as id, r.queue, r.kind, r.state, r.payload, r.output, r.errors,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.metadata, r.worker_id,
        date_part('epoch', r.created_at) * 1000 as created_at, date_part('epoch', r.run_at) * 1000 as run_at,
        date_part('epoch', r.claimed_at) * 1000 as claimed_at, date_part('epoch', r.finished_at) * 1000 as finished_at,
        null::jsonb as progress, null::text as cancel_reason,
        r.payload is not null as payload_kept
      from (
        select r.* from "queue_results" as r where r.job_id < $4 and r.job_id > coalesce((select id from unsearched), 0)
        order by r.job_id desc limit $5::int8
      ) as r where r.job_id < $6 and r.queue = $7 and r.kind = $8 and r.finished_at >= $9::timestamptz and r.finished_at < $10::timestamptz order by r.job_id desc limit $11)
    ) as record
    order by id desc limit $12
    ) as f on true
    order by f.id desc
-- $1 = 42
-- $2 = 100001
-- $3 = 100000
-- $4 = 42
-- $5 = 100000
-- $6 = 42
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "2024-02-29T12:34:56.789Z"
-- $10 = "2024-02-29T12:34:56.789Z"
-- $11 = 51
-- $12 = 51
