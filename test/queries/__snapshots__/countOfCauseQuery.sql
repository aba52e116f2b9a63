    select count(*)::float8 as jobs,
      date_part('epoch', coalesce(min(d.finished_at), statement_timestamp())) * 1000 as since
    from (
      select r.job_id, r.queue, r.kind, r.finished_at,
        coalesce(r.errors -> -1 ->> 'name', '') as name,
        left(coalesce(r.errors -> -1 ->> 'message', ''), 500) as message,
        regexp_replace(left(coalesce(r.errors -> -1 ->> 'message', ''), 300),
          '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|0[xX][0-9a-fA-F]+|[0-9]+', '#', 'g') as cause
      from (
        select r.* from "queue_results" as r where r.state = 'discarded' and r.finished_at < $1::timestamptz
        order by r.finished_at desc limit $2
      ) as r
      where true and r.queue = $3 and r.kind = $4) as d
    where d.name = $5 and d.cause = $6
-- $1 = "2024-02-29T12:34:56.789Z"
-- $2 = 100
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "mail"
