select count(*)::float8 as workers from "queue_workers"
