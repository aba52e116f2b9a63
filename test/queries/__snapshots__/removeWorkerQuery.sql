delete from "queue_workers" as w where w.id = $1
-- $1 = 42
