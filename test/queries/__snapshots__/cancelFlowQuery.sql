    insert into "queue_tallies" (batch_id, cancel_reason)
    select b.id, $1 from "queue_batches" as b
    where b.flow_id = $2::int8 and b.ended_at is null
    returning batch_id
-- $1 = "mail"
-- $2 = 42
