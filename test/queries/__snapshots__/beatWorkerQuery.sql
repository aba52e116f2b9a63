    insert into "queue_workers" as w (id, name, queues, session, node, seen_at) overriding system value
    values ($1, $2, $3::text::jsonb, $4::int4,
      $5::text, statement_timestamp())
    on conflict (id) do update set seen_at = excluded.seen_at, session = excluded.session,
      node = excluded.node
    returning (w.xmax = 0) as anew
-- $1 = 42
-- $2 = "mail"
-- $3 = "[\"mail\"]"
-- $4 = 4711
-- $5 = "mail"
