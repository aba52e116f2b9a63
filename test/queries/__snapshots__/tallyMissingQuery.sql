    with free as materialized (
      select b.id from "queue_batches" as b
      where b.id = $1::int8 and b.ended_at is null
        and b.recounted_at is not distinct from $2::timestamptz
      for no key update skip locked
    ),
    recounted as (
      update "queue_batches" as b set recounted_at = statement_timestamp()
      where b.id = any(array(select id from free))
      returning b.id
    )
    insert into "queue_tallies" (batch_id, ended, failed)
    select r.id, $3::int4, $4::int4 from recounted as r where $5::int4 > 0
    returning batch_id
-- $1 = 42
-- $2 = null
-- $3 = 2
-- $4 = 1
-- $5 = 2
