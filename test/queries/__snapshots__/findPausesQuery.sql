    select p.queue, date_part('epoch', p.paused_at) * 1000 as paused_at from "queue_pauses" as p order by p.queue
