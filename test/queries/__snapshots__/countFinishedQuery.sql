    select f.at, count(*)::float8 as read, date_part('epoch', min(f.finished_at)) * 1000 as since,
      (count(*) filter (where f.seen and f.state = 'completed'))::float8 as completed, (count(*) filter (where f.seen and f.state = 'discarded'))::float8 as discarded, (count(*) filter (where f.seen and f.state = 'cancelled'))::float8 as cancelled,
      percentile_cont(0.5) within group (order by f.wait) filter (where f.seen) as wait_50, percentile_cont(0.95) within group (order by f.wait) filter (where f.seen) as wait_95,
      percentile_cont(0.5) within group (order by f.run) filter (where f.seen) as run_50, percentile_cont(0.95) within group (order by f.run) filter (where f.seen) as run_95
    from (
      select r.state, r.finished_at, true as seen,
        floor(date_part('epoch', r.finished_at) / 60) * 60000 as at,
        least(greatest((date_part('epoch', r.claimed_at) - date_part('epoch', r.run_at)) * 1000, 0), 1000000000000000) as wait,
        date_part('epoch', r.finished_at - r.claimed_at) * 1000 as run
      from (
        select r.* from "queue_results" as r
        where r.finished_at > statement_timestamp() - $1 * interval '1 minute'
        order by r.finished_at desc limit $2
      ) as r
    ) as f
    group by f.at order by f.at
-- $1 = 60
-- $2 = 100
