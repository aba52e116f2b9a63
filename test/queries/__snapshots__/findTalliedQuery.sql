    with recursive tallied as (
      (select t.batch_id from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c cross join "queue_tallies" as t order by t.batch_id limit 1)
      union all
      select n.batch_id from tallied as l cross join lateral (
        select t.batch_id from "queue_tallies" as t where t.batch_id > l.batch_id order by t.batch_id limit 1
      ) as n
    )
    select batch_id from tallied
    where batch_id not in (select unnest($4::text::int8[])) limit $5::int4
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "{42}"
-- $5 = 10000
