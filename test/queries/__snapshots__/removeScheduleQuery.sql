    delete from "queue_schedules" as s where s.name = $1 returning s.name
-- $1 = "mail"
