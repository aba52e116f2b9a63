    select d.queue, d.kind, d.name, d.cause, count(*)::float8 as jobs,
      date_part('epoch', min(d.finished_at)) * 1000 as first_at, date_part('epoch', max(d.finished_at)) * 1000 as last_at,
      max(d.job_id)::float8 as sample_id, (array_agg(d.message order by d.job_id desc))[1] as message,
      (array_agg(d.job_id order by d.job_id desc))[1:5]::text as newest,
      date_part('epoch', statement_timestamp()) * 1000 as seen_at
    from (
      select r.job_id, r.queue, r.kind, r.finished_at,
        coalesce(r.errors -> -1 ->> 'name', '') as name,
        left(coalesce(r.errors -> -1 ->> 'message', ''), 500) as message,
        regexp_replace(left(coalesce(r.errors -> -1 ->> 'message', ''), 300),
          '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|0[xX][0-9a-fA-F]+|[0-9]+', '#', 'g') as cause
      from (
        select r.* from "queue_results" as r where r.state = 'discarded' and r.finished_at > statement_timestamp() - $1::float8 * interval '1 hour'
        order by r.finished_at desc limit $2
      ) as r
      where true and r.queue in (
        select jsonb_array_elements_text($3::text::jsonb)) and r.queue = $4 and r.kind = $5) as d
    group by d.queue, d.kind, d.name, d.cause
    order by count(*) desc, max(d.finished_at) desc limit $6
-- $1 = 24
-- $2 = 100
-- $3 = "[\"mail\"]"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = 10
