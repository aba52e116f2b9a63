    select d.job_id::float8 as id from (
      select r.job_id, r.queue, r.kind, r.finished_at,
        coalesce(r.errors -> -1 ->> 'name', '') as name,
        left(coalesce(r.errors -> -1 ->> 'message', ''), 500) as message,
        regexp_replace(left(coalesce(r.errors -> -1 ->> 'message', ''), 300),
          '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9a-f]+|[0-9]+', '#', 'gi') as cause
      from (
        select r.* from "queue_results" as r order by r.finished_at desc limit $1
      ) as r
      where r.state = 'discarded' and r.kind = $2 and r.queue = $3) as d
    where d.name = $4 and d.cause = $5
    order by d.job_id limit $6
-- $1 = 100
-- $2 = "mail"
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = 10
