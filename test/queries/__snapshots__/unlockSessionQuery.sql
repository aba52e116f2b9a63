select pg_advisory_unlock(hashtextextended($1::text::regclass::oid::text, $2::int8))
-- $1 = "\"queue_workers\""
-- $2 = 42
