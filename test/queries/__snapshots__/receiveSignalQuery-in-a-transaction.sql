    with box as (
      insert into "queue_mailboxes" as m (job_id, queue, name, waiting, updated_at)
      select j.id, j.queue, $1, true, statement_timestamp() from "queue_jobs" as j
      where j.queue = $2 and j.id = $3::int8
        and j.worker_id is not distinct from $4::int8 and j.fence = $5::int8
      on conflict (job_id, queue, name) do update
      set waiting = jsonb_array_length(m.sent) <= greatest($6::int4, m.received),
        received = greatest(m.received, least($7::int4 + 1, jsonb_array_length(m.sent))),
        updated_at = excluded.updated_at
      returning m.sent -> $8::int4 -> 'value' as value
    ),
    holder as materialized (
      select j.id, box.value, s.until <= statement_timestamp() as late
      from box cross join "queue_jobs" as j
      left join "queue_steps" as s on s.job_id = j.id and s.queue = j.queue and s.name = $9
      where j.queue = $10 and j.id = $11::int8
        and j.worker_id is not distinct from $12::int8 and j.fence = $13::int8
      for no key update of j
    ),
    recorded as (
      insert into "queue_steps" as s (job_id, queue, name, kind, signal, output, fence, until, trace,
        started_at, ended_at)
      select id, $14, $15, 'signal', $16, value, $17::int8,
        statement_timestamp() + $18::float8 * interval '1 millisecond',
        $19::text, statement_timestamp(),
        case when value is not null then statement_timestamp() end
      from holder
      on conflict (job_id, queue, name) do update
      set output = case when s.ended_at is null then excluded.output else s.output end,
        ended_at = coalesce(s.ended_at, excluded.ended_at), fence = excluded.fence,
        until = coalesce(s.until, excluded.until), trace = coalesce(excluded.trace, s.trace)
      returning s.output, s.output is not null as has_output, s.ended_at is not null as ended, s.until
    )
    select output, has_output, ended,
      extract(epoch from until - statement_timestamp())::float8 * 1000 as left_ms
    from recorded
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 42
-- $4 = null
-- $5 = 1
-- $6 = 1
-- $7 = 1
-- $8 = 1
-- $9 = "mail"
-- $10 = "mail"
-- $11 = 42
-- $12 = null
-- $13 = 1
-- $14 = "mail"
-- $15 = "mail"
-- $16 = "mail"
-- $17 = 1
-- $18 = null
-- $19 = null
