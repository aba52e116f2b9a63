    insert into "queue_workers" as w (id, name, queues) overriding system value
    values ($1, $2, $3::text::jsonb)
    on conflict (id) do update set seen_at = statement_timestamp()
    returning (w.xmax = 0) as anew
-- $1 = 42
-- $2 = "mail"
-- $3 = "[\"mail\"]"
