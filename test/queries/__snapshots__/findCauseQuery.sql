    select r.job_id::float8 as job_id, r.queue, r.kind, coalesce(r.errors -> -1 ->> 'name', '') as name,
      regexp_replace(left(coalesce(r.errors -> -1 ->> 'message', ''), 300),
          '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|0[xX][0-9a-fA-F]+|[0-9]+', '#', 'g') as cause
    from "queue_results" as r
    where r.job_id = any(array(select unnest($1::text::int8[]))) and r.state = 'discarded' and r.finished_at < $2::timestamptz
    order by r.job_id desc limit 1
-- $1 = "{42}"
-- $2 = "2024-02-29T12:34:56.789Z"
