    select i.place, j.id
    from (
        select r.queue, r.kind, r.unique_key, r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (queue text, kind text, unique_key text))
          with ordinality as r(queue, kind, unique_key, place)) as i
    join "queue_jobs" as j on j.queue = i.queue and j.kind = i.kind and j.unique_key = i.unique_key
-- $1 = "[{\"queue\":\"mail\",\"kind\":\"mail\",\"unique_key\":\"mail\"}]"
