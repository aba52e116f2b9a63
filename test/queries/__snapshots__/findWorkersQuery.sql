    select w.id, w.session, w.node, extract(epoch from w.started_at)::text as started, extract(epoch from w.seen_at)::text as seen
    from "queue_workers" as w
