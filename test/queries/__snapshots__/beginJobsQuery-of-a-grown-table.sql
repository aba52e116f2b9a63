    with table_size as materialized (
      select c.relkind = 'r' and pg_relation_size(c.oid) > $1::int8 as grown
      from pg_class as c where c.oid = $2::text::regclass
    ),
    i as materialized (
      select id, fence from (select 1) as one cross join set_config('lock_timeout', $3::text, true) as patience cross join set_config('synchronous_commit', 'off', true) as haste
        cross join rows from (unnest($4::text::int8[]), unnest($5::text::int8[])) as r(id, fence)
    ),
    begun as (
    update "queue_jobs" as j set claimed_at = least(j.claimed_at, statement_timestamp())
    where j.queue = $6 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $7::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true and (select t.grown from table_size as t)
    returning j.id
    )
    select id, (select t.grown from table_size as t) as grown from i where id not in (select id from begun)
-- $1 = 524288
-- $2 = "\"queue_jobs\""
-- $3 = "100ms"
-- $4 = "{42}"
-- $5 = "{1}"
-- $6 = "mail"
-- $7 = 42
