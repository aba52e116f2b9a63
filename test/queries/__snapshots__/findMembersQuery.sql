    select j.queue, j.id from "queue_batches" as b join "queue_jobs" as j on j.batch_id = b.id
    where b.id = any($1::text::int8[]) and b.cancel_reason is not null
      and j.cancel_reason is null and j.id > $2::int8
    order by j.id limit $3::int4
-- $1 = "{42}"
-- $2 = 0
-- $3 = 1000
