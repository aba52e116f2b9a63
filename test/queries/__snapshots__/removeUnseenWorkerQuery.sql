    delete from "queue_workers" as w where w.id = $1 and w.seen_at = to_timestamp($2::text::float8)
    returning w.id, w.name
-- $1 = 42
-- $2 = "1709210096.789"
