    select s.kind, s.group_key, s.concurrency::float8 as concurrency,
      s.rate_limit::float8 as rate_limit, s.rate_per_ms::float8 as rate_per_ms, s.weight::float8 as weight,
      date_part('epoch', s.updated_at) * 1000 as updated_at from "queue_limits" as s
    where s.queue = $1 and s.kind = '' and s.group_key > $2 and s.group_key <> '*'
    order by s.group_key limit $3
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 11
