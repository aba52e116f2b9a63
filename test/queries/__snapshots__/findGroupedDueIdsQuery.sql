    with ready as materialized (
      select l.group_key, min(l.place) as place from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
      cross join (
        select l.group_key, row_number() over (order by l.place) as place from (
          select l.* from (
            select g.group_key, g.turn as place from "queue_groups" as g
            where g.queue = $4 and g.turn >= 0 and g.ready_at = '-infinity'
            order by g.turn limit 10000 offset $5::int8
          ) as l
          where (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($6::text::jsonb))) is true and (j.id in (select unnest($7::text::int8[]))) is not true as due from "queue_jobs" as j where j.queue = $8 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $9 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $10 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($11::text::jsonb))) is true and (j.id in (select unnest($12::text::int8[]))) is not true
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        ) limit $13::int8
        ) as l
        union all
        select l.group_key, row_number() over (order by l.place) as place from (
          select l.* from (
            select g.group_key, g.ready_at as place from "queue_groups" as g
            where g.queue = $14 and g.turn >= 0 and g.ready_at > '-infinity' and g.ready_at <= statement_timestamp()
            order by g.ready_at limit 10000 offset $15::int8
          ) as l
          where (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($16::text::jsonb))) is true and (j.id in (select unnest($17::text::int8[]))) is not true as due from "queue_jobs" as j where j.queue = $18 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $19 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $20 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($21::text::jsonb))) is true and (j.id in (select unnest($22::text::int8[]))) is not true
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        ) limit $23::int8
        ) as l
        union all
        select l.group_key, row_number() over (order by l.place) as place from (
          select l.* from (
            select n.group_key, min(n.place) as place from (
              select unnest(n.group_keys) as group_key, row_number() over (order by n.due_at, n.id) as place
              from "queue_notes" as n
              where n.queue = $24 and n.due_at <= statement_timestamp()
              order by n.due_at, n.id limit $25::int8
            ) as n
            group by n.group_key order by min(n.place)
          ) as l
          where (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($26::text::jsonb))) is true and (j.id in (select unnest($27::text::int8[]))) is not true as due from "queue_jobs" as j where j.queue = $28 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $29 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $30 and j.group_key = l.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($31::text::jsonb))) is true and (j.id in (select unnest($32::text::int8[]))) is not true
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        ) limit $33::int8
        ) as l
      ) as l
      group by l.group_key
    )
    select j.id from (
      select g.*, greatest($34::int8 * 4 / count(*) over (), 4) as most from ready as g
    ) as g
    cross join lateral (
      select j.id, row_number() over (order by j.priority, j.run_at, j.id) as n from "queue_jobs" as j
      where j.queue = $35 and j.group_key = g.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($36::text::jsonb))) is true and (j.id in (select unnest($37::text::int8[]))) is not true
      order by j.priority, j.run_at, j.id limit g.most
    ) as j
    order by (j.n - 1) / 4, g.place, j.n limit $38::int8 * 4
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "mail"
-- $5 = 0
-- $6 = "[\"mail\"]"
-- $7 = "{42,43}"
-- $8 = "mail"
-- $9 = "mail"
-- $10 = "mail"
-- $11 = "[\"mail\"]"
-- $12 = "{42,43}"
-- $13 = 10
-- $14 = "mail"
-- $15 = 0
-- $16 = "[\"mail\"]"
-- $17 = "{42,43}"
-- $18 = "mail"
-- $19 = "mail"
-- $20 = "mail"
-- $21 = "[\"mail\"]"
-- $22 = "{42,43}"
-- $23 = 10
-- $24 = "mail"
-- $25 = 10
-- $26 = "[\"mail\"]"
-- $27 = "{42,43}"
-- $28 = "mail"
-- $29 = "mail"
-- $30 = "mail"
-- $31 = "[\"mail\"]"
-- $32 = "{42,43}"
-- $33 = 10
-- $34 = 10
-- $35 = "mail"
-- $36 = "[\"mail\"]"
-- $37 = "{42,43}"
-- $38 = 10
