    select b.id, b.ended_at is null as open, b.cancel_reason is not null as unwanted,
      coalesce(b.recounted_at, b.created_at)
        < statement_timestamp() - $1 * interval '1 millisecond' as stale
    from "queue_batches" as b where b.id > $2::int8 order by b.id limit $3::int4
-- $1 = 60000
-- $2 = 42
-- $3 = 1000
