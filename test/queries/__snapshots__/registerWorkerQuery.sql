    insert into "queue_workers" (name, queues, kinds)
    values ($1, $2::text::jsonb, $3::text::jsonb)
    returning id
-- $1 = "mail"
-- $2 = "[\"mail\"]"
-- $3 = null
