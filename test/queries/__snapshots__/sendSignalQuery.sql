    insert into "queue_mailboxes" as m (job_id, queue, name, sent, updated_at)
    select j.id, j.queue, $1, $2::text::jsonb, statement_timestamp()
    from "queue_jobs" as j
    where j.queue = $3 and j.id = $4::int8
    on conflict (job_id, queue, name) do update
    set sent = case
        when false or jsonb_array_length(m.sent) - m.received >= $5::int4
          or jsonb_array_length(m.sent) >= $6::int4 then m.sent
        else m.sent || excluded.sent end,
      updated_at = excluded.updated_at
    returning m.job_id, m.queue,
      m.waiting and jsonb_array_length(m.sent) - m.received = 1 as waiting,
      m.sent -> -1 ->> 'id' = $7::text as is_sent,
      false as is_duplicate
-- $1 = "mail"
-- $2 = "[{\"id\":\"mail\",\"value\":{\"text\":\"mail\"}}]"
-- $3 = "mail"
-- $4 = 42
-- $5 = 1000
-- $6 = 10000
-- $7 = "mail"
