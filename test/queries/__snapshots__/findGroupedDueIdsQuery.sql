    with ready as materialized (
      select l.group_key, min(l.place) as place from (
        select l.group_key, row_number() over (order by l.place) as place from (
          select l.* from (
            select g.group_key, g.turn as place from "queue_groups" as g
            where g.queue = $1 and g.turn >= 0 and g.ready_at = '-infinity'
            order by g.turn limit 10000 offset $2::int8
          ) as l
          where (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($3::text::jsonb))) is true and (j.id in (select unnest($4::text::int8[]))) is not true as due from "queue_jobs" as j where j.queue = $5 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $6 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $7 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($8::text::jsonb))) is true and (j.id in (select unnest($9::text::int8[]))) is not true
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        ) limit $10::int8
        ) as l
        union all
        select l.group_key, row_number() over (order by l.place) as place from (
          select l.* from (
            select g.group_key, g.ready_at as place from "queue_groups" as g
            where g.queue = $11 and g.turn >= 0 and g.ready_at > '-infinity' and g.ready_at <= statement_timestamp()
            order by g.ready_at limit 10000 offset $12::int8
          ) as l
          where (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($13::text::jsonb))) is true and (j.id in (select unnest($14::text::int8[]))) is not true as due from "queue_jobs" as j where j.queue = $15 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $16 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $17 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($18::text::jsonb))) is true and (j.id in (select unnest($19::text::int8[]))) is not true
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        ) limit $20::int8
        ) as l
        union all
        select l.group_key, row_number() over (order by l.place) as place from (
          select l.* from (
            select n.group_key, min(n.place) as place from (
              select unnest(n.group_keys) as group_key, row_number() over (order by n.due_at, n.id) as place
              from "queue_notes" as n
              where n.queue = $21 and n.due_at <= statement_timestamp()
              order by n.due_at, n.id limit $22::int8
            ) as n
            group by n.group_key order by min(n.place)
          ) as l
          where (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($23::text::jsonb))) is true and (j.id in (select unnest($24::text::int8[]))) is not true as due from "queue_jobs" as j where j.queue = $25 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $26 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $27 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($28::text::jsonb))) is true and (j.id in (select unnest($29::text::int8[]))) is not true
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        ) limit $30::int8
        ) as l
      ) as l
      group by l.group_key
    )
    select j.id from (
      select g.*, greatest($31::int8 * 4 / count(*) over (), 4) as most from ready as g
    ) as g
    cross join lateral (
      select j.id, row_number() over (order by j.priority, j.run_at, j.id) as n from "queue_jobs" as j
      where j.queue = $32 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($33::text::jsonb))) is true and (j.id in (select unnest($34::text::int8[]))) is not true
      order by j.priority, j.run_at, j.id limit g.most
    ) as j
    order by (j.n - 1) / 4, g.place, j.n limit $35::int8 * 4
-- $1 = "mail"
-- $2 = 0
-- $3 = "[\"mail\"]"
-- $4 = "{42,43}"
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "[\"mail\"]"
-- $9 = "{42,43}"
-- $10 = 10
-- $11 = "mail"
-- $12 = 0
-- $13 = "[\"mail\"]"
-- $14 = "{42,43}"
-- $15 = "mail"
-- $16 = "mail"
-- $17 = "mail"
-- $18 = "[\"mail\"]"
-- $19 = "{42,43}"
-- $20 = 10
-- $21 = "mail"
-- $22 = 10
-- $23 = "[\"mail\"]"
-- $24 = "{42,43}"
-- $25 = "mail"
-- $26 = "mail"
-- $27 = "mail"
-- $28 = "[\"mail\"]"
-- $29 = "{42,43}"
-- $30 = 10
-- $31 = 10
-- $32 = "mail"
-- $33 = "[\"mail\"]"
-- $34 = "{42,43}"
-- $35 = 10
