    select r.queue, r.kind, count(*)::float8 as read,
      count(*) filter (where r.state = 'discarded')::float8 as discarded,
      count(*) filter (where case when r.state = 'discarded'
        and r.finished_at > statement_timestamp() - interval '1 hour'
        then r.errors -> -1 ->> 'name' = 'WorkerLostError' else false end)::float8 as killers,
      min(date_part('epoch', r.finished_at) * 1000) as since
    from (
      select r.queue, r.kind, r.state, r.errors, r.finished_at from "queue_results" as r
      order by r.finished_at desc limit 10000
    ) as r
    group by r.queue, r.kind
