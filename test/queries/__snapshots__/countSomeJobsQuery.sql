    select i.queue, s.*
    from jsonb_array_elements_text($1::text::jsonb) as i(queue)
    cross join lateral (
      select j.kind, count(*) filter (where j.worker_id is null and j.run_at <= statement_timestamp())::float8 as due,
      count(*) filter (where j.worker_id is null and j.run_at <= statement_timestamp() and j.group_key is not null)::float8 as grouped,
      count(*) filter (where j.worker_id is not null)::float8 as running,
      count(*) filter (where j.worker_id is null and j.run_at > statement_timestamp()
        and j.run_at < 'infinity')::float8 as scheduled,
      count(*) filter (where j.worker_id is null and j.run_at = 'infinity')::float8 as waiting,
      (date_part('epoch', statement_timestamp()) - date_part('epoch', min(j.run_at) filter (where j.worker_id is null and j.run_at <= statement_timestamp()))) * 1000 as oldest_due_ms
      from (
        (
          select j.kind, j.worker_id, j.run_at, j.group_key
          from generate_series(0, 9) as p(priority)
          cross join lateral (
            select j.kind, j.worker_id, j.run_at, j.group_key from "queue_jobs" as j
            where j.queue = i.queue and j.priority = p.priority::int2
              and j.group_key is null and (j.group_key is null or j.id in (select generate_series(-10000, -1)))
            order by j.run_at, j.id limit 10001
          ) as j
          limit 10001
        )
        union all
        (
          select j.kind, j.worker_id, j.run_at, j.group_key from "queue_jobs" as j
          where j.queue = i.queue and j.group_key is not null
          limit 10001
        )
      ) as j
      group by j.kind
    ) as s
-- $1 = "[\"mail\"]"
