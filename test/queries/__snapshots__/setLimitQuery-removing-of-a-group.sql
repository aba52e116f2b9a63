    with s as (
      delete from "queue_limits" as s
      where s.queue = $1 and s.kind = $2 and s.group_key = $3
      returning s.*
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select $4::text as queue, statement_timestamp() as due_at, $5::text as group_key
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select s.kind, s.group_key, s.concurrency::float8 as concurrency,
      s.rate_limit::float8 as rate_limit, s.rate_per_ms::float8 as rate_per_ms, s.weight::float8 as weight,
      date_part('epoch', s.updated_at) * 1000 as updated_at from s
-- $1 = "mail"
-- $2 = ""
-- $3 = "mail"
-- $4 = "mail"
-- $5 = "mail"
