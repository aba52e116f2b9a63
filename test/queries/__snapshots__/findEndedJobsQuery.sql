    select f.*, p.last_us, p.last_id, p.read_count
    from (
      select (extract(epoch from e.finished_at) * 1000000)::float8 as last_us, e.job_id as last_id, count(*) over () as read_count
      from (
        select r.* from "queue_results" as r
        where r.finished_at >= to_timestamp($1::float8 / 1000000) and (r.finished_at, r.job_id) > (to_timestamp($2::float8 / 1000000), $3::int8)
        order by r.finished_at, r.job_id limit $4::int8
      ) as e order by e.finished_at desc, e.job_id desc limit 1
    ) as p
    left join (
      select r.job_id as id, r.queue, r.kind, r.state, r.payload, r.output, r.errors,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.metadata, r.worker_id,
        date_part('epoch', r.created_at) * 1000 as created_at, date_part('epoch', r.run_at) * 1000 as run_at,
        date_part('epoch', r.claimed_at) * 1000 as claimed_at, date_part('epoch', r.finished_at) * 1000 as finished_at,
        null::jsonb as progress, null::text as cancel_reason,
        r.payload is not null as payload_kept
      from (
        select r.* from "queue_results" as r
        where r.finished_at >= to_timestamp($5::float8 / 1000000) and (r.finished_at, r.job_id) > (to_timestamp($6::float8 / 1000000), $7::int8)
        order by r.finished_at, r.job_id limit $8::int8
      ) as r where r.queue = $9 and r.kind = $10 and r.group_key = $11 and r.state = $12 and (r.payload @> $13::text::jsonb)
    ) as f on true
    order by f.finished_at, f.id
-- $1 = 0
-- $2 = 0
-- $3 = 42
-- $4 = 10
-- $5 = 0
-- $6 = 0
-- $7 = 42
-- $8 = 10
-- $9 = "mail"
-- $10 = "mail"
-- $11 = "mail"
-- $12 = "discarded"
-- $13 = "{\"text\":\"mail\"}"
