    select i.queue, date_part('epoch', least(n.due_at, g.ready_at)) * 1000 as due_at,
      date_part('epoch', statement_timestamp()) * 1000 as now
    from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
    cross join jsonb_to_recordset($4::text::jsonb) as i(queue text)
    left join lateral (
      select n.due_at from "queue_notes" as n where n.queue = $5::text order by n.due_at limit 1
    ) as n on true
    left join lateral (
      select greatest(g.ready_at, statement_timestamp()) as ready_at from "queue_groups" as g
      where g.queue = $6::text and g.turn >= 0 and g.ready_at < 'infinity'
      order by g.ready_at limit 1
    ) as g on true
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "[{\"queue\":\"mail\"}]"
-- $5 = "mail"
-- $6 = "mail"
