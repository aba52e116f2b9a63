    with i as (
      select * from (
        select r.name, r.revision, r.ticks, r.passed_ms, r.next_ms, r.last_ms, r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (name text, revision int8, ticks jsonb, passed_ms float8, next_ms float8, last_ms float8))
          with ordinality as r(name, revision, ticks, passed_ms, next_ms, last_ms, place)) as i
    ),
    s as materialized (
      select s.name, s.queue, s.kind, s.payload, s.settings, s.overlap, s.last_at,
        i.ticks, i.passed_ms, i.next_ms, i.last_ms, i.place
      from i join "queue_schedules" as s on s.name = i.name cross join set_config('lock_timeout', $2::text, true) as patience
      where s.name = any(array(select name from i)) and s.revision = i.revision and s.paused_at is null
      order by i.place
      for update of s skip locked
    ),
    moved as (
      update "queue_schedules" as m set revision = m.revision + 1,
        next_at = to_timestamp(s.next_ms / 1000), passed_at = to_timestamp(s.passed_ms / 1000),
        last_at = coalesce(to_timestamp(s.last_ms / 1000), m.last_at)
      from s where m.name = any(array(select name from s)) and m.name = s.name
      returning m.name
    ),
    inserted as (
      insert into "queue_jobs"
        (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata, group_key, weight)
      select s.queue, s.kind, s.payload, (s.settings ->> 'priority')::int2, statement_timestamp(),
        statement_timestamp(), (s.settings ->> 'maxAttempts')::int2,
        case when not s.overlap then $3::text || s.name end,
        s.settings -> 'metadata' || t.tick, case when $4::text::jsonb @> to_jsonb(s.queue)
          then coalesce(s.settings ->> 'group', $5) end,
          coalesce((s.settings ->> 'cost')::int2, 1)
      from s as s cross join lateral jsonb_array_elements(s.ticks) with ordinality as t(tick, place)
      order by s.place, t.place
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning id, queue, metadata, group_key, run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from inserted as g
        where g.group_key is not null and g.run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select m.name, j.id, case when j.id is not null then pg_notify($6::text, j.queue) is not null end as woke
    from moved as m left join inserted as j on j.metadata ->> 'schedule' = m.name
    order by j.id
-- $1 = "[{\"name\":\"mail\",\"revision\":42,\"ticks\":[{\"schedule\":\"mail\",\"tick\":\"2024-02-29T12:34:56.789Z\"}],\"passed_ms\":1709210096790,\"next_ms\":null,\"last_ms\":1709210096789}]"
-- $2 = "100ms"
-- $3 = "schedule:"
-- $4 = "[\"mail\"]"
-- $5 = "-"
-- $6 = "queue_wake_queue_jobs"
