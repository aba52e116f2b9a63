    select nullif(count(*), 0) as batches, sum(b.total)::float8 as total, sum(b.pending)::float8 as pending,
      sum(b.failed)::float8 as failed, min(b.cancel_reason) as cancel_reason,
      date_part('epoch', min(b.created_at)) * 1000 as created_at,
      case when bool_and(b.ended_at is not null) then date_part('epoch', max(b.ended_at)) * 1000 end as ended_at
    from "queue_batches" as b where b.flow_id = $1::int8
-- $1 = 42
