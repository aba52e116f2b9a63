    with hour as materialized (
      select (floor(date_part('epoch', min(m.at)) / 3600) * 3600)::int8 as begin
      from "queue_metrics" as m
      where m.minutes = 1
        and m.at >= to_timestamp(coalesce((select max(f.report) + 3600 from "queue_metrics" as f where f.worker_id = 0
          and f.report <= date_part('epoch', statement_timestamp())::int8 - 3600), 0))
        and m.at < to_timestamp(
          floor((date_part('epoch', statement_timestamp()) - 300) / 3600) * 3600)
    ),
    ahead as materialized (
      select f.report, f.queue, f.kind from "queue_metrics" as f
      where f.worker_id = 0 and f.report > date_part('epoch', statement_timestamp())::int8 - 3600
        and exists (
          select from "queue_metrics" as r
          where r.minutes = 1 and r.at >= f.at and r.at < f.at + interval '1 hour'
            and r.queue = f.queue and r.kind = f.kind
        )
      for update skip locked
    ),
    taken_back as (
      delete from "queue_metrics" as m
      where m.worker_id = 0 and (m.report, m.queue, m.kind) in (select report, queue, kind from ahead)
    ),
    part as materialized (
      select (select h.begin from hour as h) as step, m.* from "queue_metrics" as m
      where m.minutes = 1
        and m.at >= to_timestamp((select h.begin from hour as h))
        and m.at < to_timestamp((select h.begin from hour as h) + 3600)
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
    insert into "queue_metrics" (worker_id, report, queue, kind, at, minutes, wait_ms, run_ms,
      completed, retried, discarded, cancelled, snoozed, interrupted, lost, wait, run)
    select 0, s.step, s.queue, s.kind, to_timestamp(s.step), 60, s.wait_ms, s.run_ms,
      s.completed, s.retried, s.discarded, s.cancelled, s.snoozed, s.interrupted, s.lost, s.wait, s.run
    from summed as s
    order by s.queue, s.kind
    on conflict do nothing
    returning report
