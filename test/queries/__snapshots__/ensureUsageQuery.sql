    insert into "queue_usage" (queue, kind)
    select $1::text, k.kind
    from jsonb_array_elements_text($2::text::jsonb) as k(kind)
    order by k.kind
    on conflict (queue, kind) do nothing
-- $1 = "mail"
-- $2 = "[\"\",\"mail\"]"
