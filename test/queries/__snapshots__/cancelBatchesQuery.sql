    insert into "queue_tallies" (batch_id, cancel_reason)
    select b.id, $1 from "queue_batches" as b
    where b.id = any(array(select unnest($2::text::int8[]))) and b.ended_at is null
-- $1 = "mail"
-- $2 = "{42,43}"
