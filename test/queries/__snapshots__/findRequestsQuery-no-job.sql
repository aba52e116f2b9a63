    select p.queue, null::int8 as id, null::int8 as fence, null::bool as held,
      null::text as cancel_reason
    from "queue_pauses" as p
    where p.queue = any(array(select jsonb_array_elements_text($1::text::jsonb)))
-- $1 = "[\"mail\"]"
