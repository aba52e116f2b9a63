    update "queue_batches" as b set total = $1::int8, pending = $2::int8,
      ended_at = case when $3::int8 = 0 then statement_timestamp() end
    where b.id = $4::int8
    returning b.id
-- $1 = 3
-- $2 = 3
-- $3 = 3
-- $4 = 42
