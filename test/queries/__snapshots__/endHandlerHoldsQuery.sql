    with ended as (
      delete from "queue_holds" as h
      where h.queue = $1
        and h.group_key = any(array(select jsonb_array_elements_text($2::text::jsonb)))
        and h.job_id = any(array(select unnest($3::text::int8[]))) and h.worker_id = $4::int8
      returning h.group_key
    )
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct $5::text as queue, statement_timestamp() as due_at, e.group_key
        from ended as e
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
-- $1 = "mail"
-- $2 = "[\"mail\"]"
-- $3 = "{1,2}"
-- $4 = 1
-- $5 = "mail"
