    insert into "queue_usage" (queue, kind) values ($1, $2) on conflict (queue, kind) do nothing
-- $1 = "mail"
-- $2 = "mail"
