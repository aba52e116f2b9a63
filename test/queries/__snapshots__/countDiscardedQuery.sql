    select count(*)::float8 as read, (count(*) filter (where d.seen))::float8 as jobs,
      date_part('epoch', min(d.finished_at)) * 1000 as since
    from (
      select r.finished_at, true as seen
      from "queue_results" as r
      where r.state = 'discarded'
        and r.finished_at > statement_timestamp() - $1::float8 * interval '1 hour'
      order by r.finished_at desc limit $2
    ) as d
-- $1 = 24
-- $2 = 100
