    with locked as materialized (
      select b.id, b.cancel_reason from "queue_batches" as b
      where b.id = $1::int8 and b.ended_at is null and not exists (
        select from "queue_waits" as w where w.batch_id = b.id and w.policy in ('parent', 'detached')
      )
      for share of b
    )
    insert into "queue_tallies" (batch_id, added, cancel_reason)
    select id, $2::int4, cancel_reason from locked
    returning batch_id
-- $1 = 42
-- $2 = 2
