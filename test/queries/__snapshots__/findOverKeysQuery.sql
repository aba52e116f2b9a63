select k.queue from "queue_keys" as k where k.until <= statement_timestamp() group by k.queue
