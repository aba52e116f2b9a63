    with table_size as materialized (
      select c.relkind = 'r' and pg_relation_size(c.oid) > $1::int8 as grown
      from pg_class as c where c.oid = $2::text::regclass
    ),
    held as materialized (
      select j.id, j.queue, j.fence from "queue_jobs" as j cross join set_config('lock_timeout', $3::text, true) as patience
      where j.queue = $4 and j.id = $5::int8
        and j.worker_id is not distinct from $6::int8 and j.fence = $7::int8 and (select t.grown from table_size as t)
      for no key update of j
    ),
    recorded as (
    insert into "queue_steps" as s (job_id, queue, name, kind, output, error, attempts, fence, started_at,
      ended_at)
    select id, queue, $8::text, $9::text, $10::text::jsonb,
      $11::text::jsonb, $12::int2, fence,
      statement_timestamp() - $13::float8 * interval '1 millisecond',
      case when $14::int4 = 1 then statement_timestamp() end
    from held
    on conflict (job_id, queue, name) do update
    set output = excluded.output, error = excluded.error, attempts = excluded.attempts,
      fence = excluded.fence, ended_at = excluded.ended_at
    where s.ended_at is null or (s.fence = excluded.fence and excluded.ended_at is not null)
    returning s.job_id
    )
    select (select t.grown from table_size as t) as grown, exists (select from recorded) as recorded
-- $1 = 524288
-- $2 = "\"queue_jobs\""
-- $3 = "100ms"
-- $4 = "mail"
-- $5 = 42
-- $6 = 42
-- $7 = 1
-- $8 = "mail"
-- $9 = "run"
-- $10 = "{\"text\":\"mail\"}"
-- $11 = null
-- $12 = 1
-- $13 = 12.5
-- $14 = 1
