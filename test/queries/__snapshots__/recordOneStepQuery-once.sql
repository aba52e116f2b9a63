    with held as materialized (
      select j.id, j.queue, j.fence from "queue_jobs" as j
      where j.queue = $1 and j.id = $2::int8
        and j.worker_id is not distinct from $3::int8 and j.fence = $4::int8 and (select count(*) from generate_series(1, $5::int4) as a cross join generate_series(1, $6::int4) as b cross join generate_series(1, $7::int4) as c) > 0
      for no key update of j
    )
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
    where s.ended_at is null
    returning s.job_id
-- $1 = "mail"
-- $2 = 42
-- $3 = 42
-- $4 = 1
-- $5 = 1
-- $6 = 1
-- $7 = 1
-- $8 = "mail"
-- $9 = "run"
-- $10 = "{\"text\":\"mail\"}"
-- $11 = null
-- $12 = 1
-- $13 = 12.5
-- $14 = 1
