delete from "queue_pauses" as p where p.queue = $1 returning p.queue
-- $1 = "mail"
