    select j.id from (
      (
        select g.group_key from "queue_groups" as g
        where g.queue = $1 and g.turn >= 0 and g.ready_at <= statement_timestamp()
        order by g.ready_at, g.turn limit $2::int8 * 2 + 32
      )
      union
      (
        select unnest(n.group_keys) from "queue_notes" as n
        where n.queue = $3 and n.due_at <= statement_timestamp()
        limit $4::int8 * 2 + 32
      )
    ) as g
    cross join lateral (
      select j.id from "queue_jobs" as j
      where j.queue = $5 and j.group_key = g.group_key and j.group_key is not null
        and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($6::text::jsonb))) is true
        and (j.id in (select unnest($7::text::int8[]))) is not true
      order by j.priority, j.run_at, j.id limit $8
    ) as j
    limit $9::int8 * 4
-- $1 = "mail"
-- $2 = 10
-- $3 = "mail"
-- $4 = 10
-- $5 = "mail"
-- $6 = "[\"mail\"]"
-- $7 = "{42,43}"
-- $8 = 10
-- $9 = 10
