    insert into "queue_tallies" (batch_id, added)
    select b.id, $1::int4 from "queue_batches" as b
    where b.id = $2::int8 and b.ended_at is null and not exists (
      select from "queue_waits" as w where w.batch_id = b.id and w.policy in ('parent', 'detached')
    )
    returning batch_id
-- $1 = 2
-- $2 = 42
