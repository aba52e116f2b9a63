    select s.job_id, s.name, s.kind, s.signal, s.output, s.output is not null as has_output, s.error,
      s.attempts, s.trace, date_part('epoch', s.until) * 1000 as until, date_part('epoch', s.started_at) * 1000 as started_at,
      date_part('epoch', s.ended_at) * 1000 as ended_at,
      extract(epoch from s.until - statement_timestamp())::float8 * 1000 as left_ms
    from "queue_steps" as s
    where s.job_id = any($1::text::int8[])
    order by s.started_at, s.name
-- $1 = "{42}"
