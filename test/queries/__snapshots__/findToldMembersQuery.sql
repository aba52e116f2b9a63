    with batches as materialized (
      select b.id, b.cancel_reason from "queue_batches" as b
      where b.flow_id = $1::int8 and b.cancel_reason is not null
    )
    select j.queue, j.id from "queue_jobs" as j join batches as b on b.id = j.batch_id
    where j.batch_id = any(array(select id from batches)) and j.cancel_reason = b.cancel_reason
-- $1 = 42
