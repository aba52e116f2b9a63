    select w.queues, w.kinds, count(*)::float8 as workers
    from "queue_workers" as w group by w.queues, w.kinds limit 1000
