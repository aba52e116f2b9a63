    with box as (
      insert into "queue_mailboxes" as m (job_id, queue, name, waiting, updated_at)
      select j.id, j.queue, $1, true, statement_timestamp() from "queue_jobs" as j cross join set_config('lock_timeout', $2::text, true) as patience
      where j.queue = $3 and j.id = $4::int8
        and j.worker_id is not distinct from $5::int8 and j.fence = $6::int8
      on conflict (job_id, queue, name) do update
      set waiting = jsonb_array_length(m.sent) <= greatest($7::int4, m.received),
        received = greatest(m.received, least($8::int4 + 1, jsonb_array_length(m.sent))),
        updated_at = excluded.updated_at
      returning m.sent -> $9::int4 -> 'value' as value
    ),
    holder as materialized (
      select j.id, box.value, s.until <= statement_timestamp() as late
      from box cross join "queue_jobs" as j
      left join "queue_steps" as s on s.job_id = j.id and s.queue = j.queue and s.name = $10
      where j.queue = $11 and j.id = $12::int8
        and j.worker_id is not distinct from $13::int8 and j.fence = $14::int8
      for no key update of j
    ),
    recorded as (
      insert into "queue_steps" as s (job_id, queue, name, kind, signal, output, fence, until, trace,
        started_at, ended_at)
      select id, $15, $16, 'first', case when value is not null then $17::text end,
        case when value is not null then jsonb_build_object('key', $18::text, 'value', value) end, $19::int8,
        statement_timestamp() + $20::float8 * interval '1 millisecond',
        $21::text, statement_timestamp(),
        case when value is not null then statement_timestamp() end
      from holder
      on conflict (job_id, queue, name) do update
      set output = case when s.ended_at is null then excluded.output else s.output end,
        ended_at = coalesce(s.ended_at, excluded.ended_at), fence = excluded.fence,
        signal = case when s.ended_at is null then excluded.signal else s.signal end,
        until = coalesce(s.until, excluded.until), trace = coalesce(excluded.trace, s.trace)
      returning s.output, s.output is not null as has_output, s.ended_at is not null as ended, s.until
    )
    select output, has_output, ended,
      extract(epoch from until - statement_timestamp())::float8 * 1000 as left_ms
    from recorded
-- $1 = "mail"
-- $2 = "100ms"
-- $3 = "mail"
-- $4 = 42
-- $5 = 42
-- $6 = 1
-- $7 = 1
-- $8 = 1
-- $9 = 1
-- $10 = "mail"
-- $11 = "mail"
-- $12 = 42
-- $13 = 42
-- $14 = 1
-- $15 = "mail"
-- $16 = "mail"
-- $17 = "mail"
-- $18 = "mail"
-- $19 = 1
-- $20 = null
-- $21 = null
