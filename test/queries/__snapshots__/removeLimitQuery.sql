    delete from "queue_limits" as s
    where s.queue = $1 and s.kind = $2 and s.group_key = $3
    returning s.queue
-- $1 = "mail"
-- $2 = "mail"
-- $3 = ""
