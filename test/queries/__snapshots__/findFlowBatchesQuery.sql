    select b.id, b.total, b.pending, b.failed from "queue_batches" as b
    where b.flow_id = $1::int8
    order by b.id limit $2::int4
-- $1 = 42
-- $2 = 2000
