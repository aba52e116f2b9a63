    with i as materialized (
      select i.name, i.queue, i.kind, coalesce(i.payload, 'null'::jsonb) as payload, i.settings, i.cron,
        i.every_ms, i.time_zone, i.catch_up, i.overlap, to_timestamp(i.starts_at_ms / 1000) as starts_at,
        to_timestamp(i.ends_at_ms / 1000) as ends_at
      from (
        select r.name, r.queue, r.kind, r.payload, r.settings, r.cron, r.every_ms, r.time_zone, r.catch_up, r.overlap, r.starts_at_ms, r.ends_at_ms, r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (name text, queue text, kind text, payload jsonb, settings jsonb, cron text, every_ms int8, time_zone text, catch_up text, overlap bool, starts_at_ms float8, ends_at_ms float8))
          with ordinality as r(name, queue, kind, payload, settings, cron, every_ms, time_zone, catch_up, overlap, starts_at_ms, ends_at_ms, place)) as i
    ),
    wanted as materialized (
      select i.*, coalesce(s.revision, (date_part('epoch', statement_timestamp()) * 1000000)::int8) as revision,
        (s.name is null or (s.cron, s.every_ms, s.time_zone, s.starts_at, s.ends_at) is not distinct from (i.cron,i.every_ms,i.time_zone,i.starts_at,i.ends_at) or s.paused_at is not null
          or (s.next_at > statement_timestamp()) is not false
          or s.name in (select jsonb_array_elements_text($2::text::jsonb))) as possible
      from i left join "queue_schedules" as s
        on s.name = i.name and s.name = any(array(select name from i)) cross join set_config('lock_timeout', $3::text, true) as patience
      where s.declared_by is null or s.declared_by < $4::int8
        or not exists (select from "queue_workers" as w where w.id = s.declared_by)
    ),
    written as (
      insert into "queue_schedules" as s (
        name, queue, kind, payload, settings, cron, every_ms, time_zone, catch_up, overlap, starts_at, ends_at, next_at, passed_at, revision, declared_by, seen_at, created_at
      )
      select name, queue, kind, payload, settings, cron, every_ms, time_zone, catch_up, overlap, starts_at, ends_at, now.at, now.at, w.revision, $5::int8, now.at, now.at
      from wanted as w cross join (select statement_timestamp() as at) as now
      where w.possible order by w.name
      on conflict (name) do update set 
      queue = excluded.queue, kind = excluded.kind, payload = excluded.payload, settings = excluded.settings,
      cron = excluded.cron, every_ms = excluded.every_ms, time_zone = excluded.time_zone,
      catch_up = excluded.catch_up, overlap = excluded.overlap,
      starts_at = excluded.starts_at, ends_at = excluded.ends_at,
      next_at = case when (s.cron, s.every_ms, s.time_zone, s.starts_at, s.ends_at) is not distinct from (excluded.cron,excluded.every_ms,excluded.time_zone,excluded.starts_at,excluded.ends_at) then s.next_at else excluded.next_at end,
      passed_at = case when (s.cron, s.every_ms, s.time_zone, s.starts_at, s.ends_at) is not distinct from (excluded.cron,excluded.every_ms,excluded.time_zone,excluded.starts_at,excluded.ends_at) then s.passed_at
        else greatest(s.passed_at, excluded.passed_at) end,
      declared_by = excluded.declared_by, seen_at = excluded.seen_at, revision = s.revision + 1
      where s.revision = excluded.revision
      returning s.name
    )
    select w.name, (w.name in (select name from written)) is true as written from wanted as w
-- $1 = "[{\"name\":\"mail\",\"queue\":\"mail\",\"kind\":\"mail\",\"cron\":\"mail\",\"every_ms\":null,\"time_zone\":\"mail\",\"catch_up\":\"latest\",\"overlap\":true,\"starts_at_ms\":1709210096789,\"ends_at_ms\":null,\"payload\":{\"text\":\"mail\"},\"settings\":{\"priority\":5,\"maxAttempts\":20,\"metadata\":{\"text\":\"mail\"},\"own\":{}}}]"
-- $2 = "[]"
-- $3 = "100ms"
-- $4 = 42
-- $5 = 42
