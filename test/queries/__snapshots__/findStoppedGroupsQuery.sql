    select h.queue, count(distinct h.group_key)::float8 as groups, min(h.group_key) as first
    from "queue_holds" as h
    where h.until = 'infinity' and h.worker_id is null
      and (h.queue in (select jsonb_array_elements_text($1::text::jsonb))) is true
    group by h.queue order by h.queue
-- $1 = "[\"mail\"]"
