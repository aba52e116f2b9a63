    select m.name, jsonb_array_length(m.sent) as sent, m.received, m.waiting,
      date_part('epoch', m.updated_at) * 1000 as updated_at
    from "queue_mailboxes" as m
    where m.job_id = $1::int8
    order by m.name
-- $1 = 42
