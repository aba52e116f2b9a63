    select distinct t.batch_id from (select batch_id from "queue_tallies" limit $1::int4) as t
-- $1 = 10000
