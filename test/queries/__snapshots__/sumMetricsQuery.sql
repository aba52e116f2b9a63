    with part as materialized (
      select (floor(date_part('epoch', m.at) / 60) * 60)::int8 as step, m.*
      from "queue_metrics" as m
      where m.minutes = 1 and m.at >= statement_timestamp() - $1::float8 * interval '1 minute' and m.at <= statement_timestamp()
    ),
    total as materialized (
      select p.step, p.queue, p.kind, sum(p.wait_ms) as wait_ms, sum(p.run_ms) as run_ms, sum(p.completed) as completed, sum(p.retried) as retried, sum(p.discarded) as discarded, sum(p.cancelled) as cancelled, sum(p.snoozed) as snoozed, sum(p.interrupted) as interrupted, sum(p.lost) as lost
      from part as p group by p.step, p.queue, p.kind
    ),
    binned_wait as materialized (
      select b.step, b.queue, b.kind, jsonb_object_agg(b.bin, b.count) as bins
      from (
        select p.step, p.queue, p.kind, e.key as bin, sum(e.value::int8) as count
        from part as p cross join lateral jsonb_each_text(p.wait) as e
        group by p.step, p.queue, p.kind, e.key
      ) as b
      group by b.step, b.queue, b.kind
    ),
    binned_run as materialized (
      select b.step, b.queue, b.kind, jsonb_object_agg(b.bin, b.count) as bins
      from (
        select p.step, p.queue, p.kind, e.key as bin, sum(e.value::int8) as count
        from part as p cross join lateral jsonb_each_text(p.run) as e
        group by p.step, p.queue, p.kind, e.key
      ) as b
      group by b.step, b.queue, b.kind
    ),
    summed as materialized (
      select t.*, coalesce(w.bins, '{}') as wait, coalesce(r.bins, '{}') as run
      from total as t
      left join binned_wait as w on w.step = t.step and w.queue = t.queue and w.kind = t.kind
      left join binned_run as r on r.step = t.step and r.queue = t.queue and r.kind = t.kind
    )
    select s.step::float8, s.queue, s.kind, s.wait, s.run, s.wait_ms::float8, s.run_ms::float8,
      s.completed::float8, s.retried::float8, s.discarded::float8, s.cancelled::float8, s.snoozed::float8, s.interrupted::float8, s.lost::float8
    from summed as s order by s.step, s.queue, s.kind
-- $1 = 15
