    select d.queue, d.kind, d.name, d.cause, count(*)::float8 as jobs, date_part('epoch', min(d.run_at)) * 1000 as next_at,
      max(d.id)::float8 as sample_id, (array_agg(d.message order by d.id desc))[1] as message
    from (
      select j.id, j.queue, j.kind, j.run_at, coalesce(j.errors -> -1 ->> 'name', '') as name,
        left(coalesce(j.errors -> -1 ->> 'message', ''), 500) as message,
        regexp_replace(left(coalesce(j.errors -> -1 ->> 'message', ''), 300),
          '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|0[xX][0-9a-fA-F]+|[0-9]+', '#', 'g') as cause
      from (
          select j.* from "queue_jobs" as j where j.errors <> '[]'::jsonb limit $1
        ) as j
      where (j.errors <> '[]'::jsonb and j.attempt > 0 and j.worker_id is null and j.run_at < 'infinity')
    ) as d
    group by d.queue, d.kind, d.name, d.cause
    order by count(*) desc, max(d.id) desc limit $2
-- $1 = 100
-- $2 = 10
