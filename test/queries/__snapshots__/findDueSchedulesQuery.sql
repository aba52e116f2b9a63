    select s.name, s.revision, s.cron, s.every_ms, s.time_zone, s.catch_up,
      date_part('epoch', s.starts_at) * 1000 as starts_at, date_part('epoch', s.ends_at) * 1000 as ends_at,
      date_part('epoch', s.next_at) * 1000 as next_at, date_part('epoch', s.passed_at) * 1000 as passed_at,
      date_part('epoch', s.created_at) * 1000 as created_at, date_part('epoch', statement_timestamp()) * 1000 as now_ms,
      pg_column_size(s.payload) + pg_column_size(s.settings) as job_bytes
    from "queue_schedules" as s
    where s.paused_at is null
      and s.next_at <= statement_timestamp() + $1::float8 * interval '1 millisecond'
      and (s.name in (select jsonb_array_elements_text($2::text::jsonb))
        or s.declared_by is null and s.kind in (select jsonb_array_elements_text($3::text::jsonb))) is true
      and (s.name in (select jsonb_array_elements_text($4::text::jsonb))) is not true
    order by s.next_at limit $5
-- $1 = 120000
-- $2 = "[\"mail\"]"
-- $3 = "[\"mail\"]"
-- $4 = "[\"mail\"]"
-- $5 = 100
