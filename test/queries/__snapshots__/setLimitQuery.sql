    with s as (
      insert into "queue_limits" as s (
        queue, kind, group_key, concurrency, rate_limit, rate_per_ms, weight, updated_at
      )
      values ($1, $2, $3, $4::int4, $5::int4, $6::int8,
        $7::int4, statement_timestamp())
      on conflict (queue, kind, group_key) do update set concurrency = excluded.concurrency,
        rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, weight = excluded.weight,
        updated_at = excluded.updated_at
      returning s.*
    )
    select s.kind, s.group_key, s.concurrency::float8 as concurrency,
      s.rate_limit::float8 as rate_limit, s.rate_per_ms::float8 as rate_per_ms, s.weight::float8 as weight,
      date_part('epoch', s.updated_at) * 1000 as updated_at from s
-- $1 = "mail"
-- $2 = "mail"
-- $3 = ""
-- $4 = 2
-- $5 = 100
-- $6 = 60000
-- $7 = null
