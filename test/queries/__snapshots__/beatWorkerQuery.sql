    insert into "queue_workers" as w (id, name, queues, kinds, session, node, seen_at) overriding system value
    values ($1, $2, $3::text::jsonb, $4::text::jsonb,
      $5::int4, $6::text, statement_timestamp())
    on conflict (id) do update set seen_at = excluded.seen_at, session = excluded.session,
      node = excluded.node
    returning (w.xmax = 0) as anew
-- $1 = 42
-- $2 = "mail"
-- $3 = "[\"mail\"]"
-- $4 = "[\"mail\"]"
-- $5 = 4711
-- $6 = "mail"
