    select s.name, s.revision, s.cron, s.every_ms, s.time_zone, s.catch_up,
      date_part('epoch', s.starts_at) * 1000 as starts_at, date_part('epoch', s.ends_at) * 1000 as ends_at,
      date_part('epoch', s.next_at) * 1000 as next_at, date_part('epoch', s.passed_at) * 1000 as passed_at,
      date_part('epoch', s.created_at) * 1000 as created_at, s.queue, s.kind, s.payload::text as payload,
      s.settings::text as settings, s.overlap, date_part('epoch', s.last_at) * 1000 as last_at,
      date_part('epoch', s.paused_at) * 1000 as paused_at, s.declared_by is not null as declared from "queue_schedules" as s
    where true and s.queue in (
        select jsonb_array_elements_text($1::text::jsonb)) and s.name >= (
        select s.name from "queue_schedules" as s where true and s.queue in (
        select jsonb_array_elements_text($2::text::jsonb)) order by s.name limit 1 offset $3)
    order by s.name limit $4
-- $1 = "[\"mail\"]"
-- $2 = "[\"mail\"]"
-- $3 = 50
-- $4 = 51
