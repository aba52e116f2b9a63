    select i.place, j.id
    from (
        select r.queue, r.kind, r.waiting_key, r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (queue text, kind text, waiting_key text))
          with ordinality as r(queue, kind, waiting_key, place)) as i
    join "queue_jobs" as j on j.queue = i.queue and j.kind = i.kind and j.waiting_key = i.waiting_key
-- $1 = "[{\"queue\":\"mail\",\"kind\":\"mail\",\"waiting_key\":\"mail\"}]"
