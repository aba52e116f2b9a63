    select exists (
      select from "queue_jobs" as j where j.queue = $1 and j.group_key is not null
    ) as grouped
-- $1 = "q"
