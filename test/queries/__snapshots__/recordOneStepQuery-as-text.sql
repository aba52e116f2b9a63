    with held as materialized (
      select j.id, j.queue, j.fence from "queue_jobs" as j
      where j.queue = $1 and j.id = $2::int8
        and j.worker_id is not distinct from $3::int8 and j.fence = $4::int8
      for no key update of j
    )
    insert into "queue_steps" as s (job_id, queue, name, kind, output, error, attempts, fence, started_at,
      ended_at)
    select id, queue, $5::text, $6::text, $7::text::jsonb,
      $8::text::jsonb, $9::int2, fence,
      statement_timestamp() - $10::float8 * interval '1 millisecond',
      case when $11::int4 = 1 then statement_timestamp() end
    from held
    on conflict (job_id, queue, name) do update
    set output = excluded.output, error = excluded.error, attempts = excluded.attempts,
      fence = excluded.fence, ended_at = excluded.ended_at
    where s.ended_at is null or (s.fence = excluded.fence and excluded.ended_at is not null)
    returning s.job_id
-- $1 = "mail"
-- $2 = 42
-- $3 = 42
-- $4 = 1
-- $5 = "mail"
-- $6 = "transaction"
-- $7 = null
-- $8 = null
-- $9 = 1
-- $10 = 12.5
-- $11 = 1
