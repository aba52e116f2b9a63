    select count(*)::float8 as read, (count(*) filter (where d.seen))::float8 as jobs,
      date_part('epoch', min(d.finished_at)) * 1000 as since
    from (
      select r.finished_at, true and r.queue in (
        select jsonb_array_elements_text($1::text::jsonb)) as seen
      from "queue_results" as r
      where r.state = 'discarded'
        and r.finished_at > statement_timestamp() - $2::float8 * interval '1 hour'
      order by r.finished_at desc limit $3
    ) as d
-- $1 = "[\"mail\"]"
-- $2 = 24
-- $3 = 100
