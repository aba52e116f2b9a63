    with waits as (
      delete from "queue_waits" as w where w.batch_id = any(array(select unnest($1::text::int8[])))
    ),
    tallies as (
      delete from "queue_tallies" as t
      where not exists (select from "queue_batches" as b where b.id = t.batch_id)
    )
    delete from "queue_batches" as b where b.id = any(array(select unnest($2::text::int8[])))
    returning b.id
-- $1 = "{42,43}"
-- $2 = "{42,43}"
