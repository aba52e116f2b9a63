    select w.name, extract(epoch from statement_timestamp() - w.seen_at)::float8 * 1000 as silent_ms
    from "queue_workers" as w
    where w.seen_at < statement_timestamp() - $1::float8 * interval '1 millisecond'
    order by w.seen_at limit 100
-- $1 = 300000
