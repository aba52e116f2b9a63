    with changed as (
      update "queue_schedules" as s set paused_at = null
      where s.name = $1 and s.paused_at is not null
      returning s.name
    )
    select exists (select name from changed) as changed,
      exists (select s.name from "queue_schedules" as s where s.name = $2) as known
-- $1 = "mail"
-- $2 = "mail"
