    with i as materialized (
      select id, fence, step from generate_series(1, $1::int4) as a cross join generate_series(1, $2::int4) as b cross join generate_series(1, $3::int4) as c
      cross join rows from (unnest($4::text::int8[]), unnest($5::text::int8[]),
        jsonb_array_elements($6::text::jsonb)
      ) as r(id, fence, step)
    ),
    held as materialized (
      select j.id, j.fence from "queue_jobs" as j
      where j.queue = $7 and j.id = any(array(select id from i))
        and j.worker_id is not distinct from $8::int8
        and ((j.id, j.fence) in (select id, fence from i)) is true
      for no key update
    ),
    recorded as (
      insert into "queue_steps" as s (job_id, queue, name, kind, output, error, attempts, fence, until,
        trace, started_at, ended_at)
      select i.id, $9, step ->> 'name', step ->> 'kind', step -> 'output', step -> 'error',
        (step ->> 'attempts')::int2, i.fence,
        least((step ->> 'until')::timestamptz,
          statement_timestamp() + (step ->> 'delayMs')::float8 * interval '1 millisecond'),
        step ->> 'trace',
        statement_timestamp() - (step ->> 'tookMs')::float8 * interval '1 millisecond',
        case when (step ->> 'ended')::bool then statement_timestamp() end
      from i join held as h on h.id = i.id and h.fence = i.fence
      on conflict (job_id, queue, name) do update
      set output = excluded.output, error = excluded.error, attempts = excluded.attempts,
        fence = excluded.fence, until = coalesce(s.until, excluded.until), ended_at = excluded.ended_at
      where s.ended_at is null or (s.fence = excluded.fence and excluded.ended_at is not null)
      returning s.job_id, s.fence, s.name, s.until
    )
    select job_id, fence, name, extract(epoch from until - statement_timestamp())::float8 * 1000 as left_ms
    from recorded
-- $1 = 1
-- $2 = 1
-- $3 = 1
-- $4 = "{42}"
-- $5 = "{1}"
-- $6 = "[{\"name\":\"mail\",\"kind\":\"run\",\"tookMs\":12.5,\"ended\":true,\"attempts\":1,\"output\":{\"text\":\"mail\"}}]"
-- $7 = "mail"
-- $8 = 42
-- $9 = "mail"
