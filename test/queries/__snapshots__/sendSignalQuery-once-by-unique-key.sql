    insert into "queue_mailboxes" as m (job_id, queue, name, sent, updated_at)
    select j.id, j.queue, $1, $2::text::jsonb, statement_timestamp()
    from "queue_jobs" as j
    where j.queue = $3 and j.kind = $4 and j.unique_key = $5
    and j.unique_key is not null and (j.unique_key is not null or j.id in (select generate_series(-10000, -1)))
    on conflict (job_id, queue, name) do update
    set sent = case
        when m.sent @> $6::text::jsonb or jsonb_array_length(m.sent) - m.received >= $7::int4
          or jsonb_array_length(m.sent) >= $8::int4 then m.sent
        else m.sent || excluded.sent end,
      updated_at = excluded.updated_at
    returning m.job_id, m.queue,
      m.waiting and jsonb_array_length(m.sent) - m.received = 1 as waiting,
      m.sent -> -1 ->> 'id' = $9::text as is_sent,
      m.sent @> $10::text::jsonb as is_duplicate
-- $1 = "mail"
-- $2 = "[{\"id\":\"mail\",\"value\":{\"text\":\"mail\"},\"key\":\"mail\"}]"
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "[{\"key\":\"mail\"}]"
-- $7 = 1000
-- $8 = 10000
-- $9 = "mail"
-- $10 = "[{\"key\":\"mail\"}]"
