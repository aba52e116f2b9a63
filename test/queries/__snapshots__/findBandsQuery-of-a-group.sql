    with recursive plain as (
      select q.queue, p.priority::int2, null::timestamptz as run_at
      from jsonb_array_elements_text($1::text::jsonb) as q(queue)
      cross join generate_series(0, 9) as p(priority)
    ),
    grouped as (
      (
        select j.queue, j.group_key, j.priority, j.run_at from "queue_jobs" as j
        where j.group_key is not null and j.queue in (select jsonb_array_elements_text($2::text::jsonb)) and j.group_key = $3 order by j.queue, j.group_key, j.priority, j.run_at limit 1
      )
      union all
      select n.* from grouped as w cross join lateral (
        select j.queue, j.group_key, j.priority, j.run_at from "queue_jobs" as j
        where j.group_key is not null and j.queue in (select jsonb_array_elements_text($4::text::jsonb)) and j.group_key = $5 and (j.queue, j.group_key, j.priority) > (w.queue, w.group_key, w.priority)
        order by j.queue, j.group_key, j.priority, j.run_at limit 1
      ) as n
    )
    (
      select p.queue, null::text as group_key, p.priority, trunc(extract(epoch from p.run_at) * 1000000)::text as run_us,
        p.run_at <= statement_timestamp() as is_due from plain as p
      where false limit $6
    )
    union all
    (
      select g.queue, g.group_key, g.priority, trunc(extract(epoch from g.run_at) * 1000000)::text as run_us,
        g.run_at <= statement_timestamp() as is_due from grouped as g limit $7
    )
-- $1 = "[\"mail\"]"
-- $2 = "[\"mail\"]"
-- $3 = "mail"
-- $4 = "[\"mail\"]"
-- $5 = "mail"
-- $6 = 10
-- $7 = 10
