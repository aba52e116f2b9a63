    select distinct q.name as queue
    from "queue_workers" as w cross join lateral jsonb_array_elements_text(w.queues) as q(name)
    order by q.name limit 1000
