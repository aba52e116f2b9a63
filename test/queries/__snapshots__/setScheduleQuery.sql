    with i as (
      select * from (
        select r.name, r.queue, r.kind, r.payload, r.settings, r.cron, r.every_ms, r.time_zone, r.catch_up, r.overlap, r.starts_at_ms, r.ends_at_ms, r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (name text, queue text, kind text, payload jsonb, settings jsonb, cron text, every_ms int8, time_zone text, catch_up text, overlap bool, starts_at_ms float8, ends_at_ms float8))
          with ordinality as r(name, queue, kind, payload, settings, cron, every_ms, time_zone, catch_up, overlap, starts_at_ms, ends_at_ms, place)) as i
    ),
    stored as (
      insert into "queue_schedules" as s (name, queue, kind, payload, settings, cron, every_ms, time_zone, catch_up, overlap, starts_at, ends_at, next_at, passed_at, seen_at, created_at, revision)
      select i.name, i.queue, i.kind, coalesce(i.payload, 'null'::jsonb), i.settings,
      i.cron, i.every_ms, i.time_zone, i.catch_up, i.overlap, to_timestamp(i.starts_at_ms / 1000),
      to_timestamp(i.ends_at_ms / 1000), now.at, now.at, now.at, now.at, (date_part('epoch', now.at) * 1000000)::int8
      from i cross join (select statement_timestamp() as at) as now
      on conflict (name) do update set 
      queue = excluded.queue, kind = excluded.kind, payload = excluded.payload, settings = excluded.settings,
      cron = excluded.cron, every_ms = excluded.every_ms, time_zone = excluded.time_zone,
      catch_up = excluded.catch_up, overlap = excluded.overlap,
      starts_at = excluded.starts_at, ends_at = excluded.ends_at,
      next_at = case when (s.cron, s.every_ms, s.time_zone, s.starts_at, s.ends_at) is not distinct from (excluded.cron,excluded.every_ms,excluded.time_zone,excluded.starts_at,excluded.ends_at) then s.next_at else excluded.next_at end,
      passed_at = case when (s.cron, s.every_ms, s.time_zone, s.starts_at, s.ends_at) is not distinct from (excluded.cron,excluded.every_ms,excluded.time_zone,excluded.starts_at,excluded.ends_at) then s.passed_at
        else greatest(s.passed_at, excluded.passed_at) end,
      declared_by = excluded.declared_by, seen_at = excluded.seen_at, revision = s.revision + 1
      where s.declared_by is null
      returning s.*
    )
    select s.name, s.revision, s.cron, s.every_ms, s.time_zone, s.catch_up,
      date_part('epoch', s.starts_at) * 1000 as starts_at, date_part('epoch', s.ends_at) * 1000 as ends_at,
      date_part('epoch', s.next_at) * 1000 as next_at, date_part('epoch', s.passed_at) * 1000 as passed_at,
      date_part('epoch', s.created_at) * 1000 as created_at, s.queue, s.kind, s.payload::text as payload,
      s.settings::text as settings, s.overlap, date_part('epoch', s.last_at) * 1000 as last_at,
      date_part('epoch', s.paused_at) * 1000 as paused_at, s.declared_by is not null as declared from stored as s
-- $1 = "[{\"name\":\"mail\",\"queue\":\"mail\",\"kind\":\"mail\",\"cron\":\"mail\",\"every_ms\":null,\"time_zone\":\"mail\",\"catch_up\":\"latest\",\"overlap\":true,\"starts_at_ms\":1709210096789,\"ends_at_ms\":null,\"payload\":{\"text\":\"mail\"},\"settings\":{\"priority\":5,\"maxAttempts\":20,\"metadata\":{\"text\":\"mail\"},\"own\":{}}}]"
