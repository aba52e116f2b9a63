    with held as materialized (
      select j.id, j.queue, j.fence from "queue_jobs" as j cross join set_config('lock_timeout', $1::text, true) as patience
      where j.queue = $2 and j.id = $3::int8
        and j.worker_id is not distinct from $4::int8 and j.fence = $5::int8 and (select count(*) from generate_series(1, $6::int4) as a cross join generate_series(1, $7::int4) as b cross join generate_series(1, $8::int4) as c) > 0
      for no key update of j
    )
    insert into "queue_steps" as s (job_id, queue, name, kind, output, error, attempts, fence, started_at,
      ended_at)
    select id, queue, $9::text, $10::text, $11::text::jsonb,
      $12::text::jsonb, $13::int2, fence,
      statement_timestamp() - $14::float8 * interval '1 millisecond',
      case when $15::int4 = 1 then statement_timestamp() end
    from held
    on conflict (job_id, queue, name) do update
    set output = excluded.output, error = excluded.error, attempts = excluded.attempts,
      fence = excluded.fence, ended_at = excluded.ended_at
    where s.ended_at is null or (s.fence = excluded.fence and excluded.ended_at is not null)
    returning s.job_id
-- $1 = "100ms"
-- $2 = "mail"
-- $3 = 42
-- $4 = 42
-- $5 = 1
-- $6 = 1
-- $7 = 1
-- $8 = 1
-- $9 = "mail"
-- $10 = "run"
-- $11 = "{\"text\":\"mail\"}"
-- $12 = null
-- $13 = 1
-- $14 = 12.5
-- $15 = 1
