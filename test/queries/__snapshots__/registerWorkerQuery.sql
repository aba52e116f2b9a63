    insert into "queue_workers" (name, queues) values ($1, $2::text::jsonb)
    returning id
-- $1 = "mail"
-- $2 = "[\"mail\"]"
