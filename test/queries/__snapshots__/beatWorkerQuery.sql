    insert into "queue_workers" as w (id, name, queues, session) overriding system value
    values ($1, $2, $3::text::jsonb, $4::int4)
    on conflict (id) do update set seen_at = statement_timestamp(), session = excluded.session
    returning (w.xmax = 0) as anew
-- $1 = 42
-- $2 = "mail"
-- $3 = "[\"mail\"]"
-- $4 = 4711
