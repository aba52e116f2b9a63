    select distinct t.batch_id from (
      select batch_id from "queue_tallies"
      where batch_id <> all($1::text::int8[]) limit $2::int4
    ) as t
-- $1 = "{42}"
-- $2 = 10000
