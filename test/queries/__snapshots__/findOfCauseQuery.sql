    select d.job_id::float8 as id from (
      select r.job_id, r.queue, r.kind, r.finished_at,
        coalesce(r.errors -> -1 ->> 'name', '') as name,
        left(coalesce(r.errors -> -1 ->> 'message', ''), 500) as message,
        regexp_replace(left(coalesce(r.errors -> -1 ->> 'message', ''), 300),
          '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|0[xX][0-9a-fA-F]+|[0-9]+', '#', 'g') as cause
      from (
        select r.* from "queue_results" as r where r.state = 'discarded' and r.finished_at >= $1::timestamptz and r.finished_at < $2::timestamptz
        order by r.finished_at desc limit $3
      ) as r
      where true and r.queue = $4 and r.kind = $5 and r.job_id > $6::int8) as d
    where d.name = $7 and d.cause = $8
    order by d.job_id limit $9
-- $1 = "2024-02-29T12:34:56.789Z"
-- $2 = "2024-02-29T12:34:56.789Z"
-- $3 = 100
-- $4 = "mail"
-- $5 = "mail"
-- $6 = 42
-- $7 = "mail"
-- $8 = "mail"
-- $9 = 10
