    select b.id from "queue_batches" as b where b.flow_id = $1::int8
    order by b.id for no key update
-- $1 = 42
