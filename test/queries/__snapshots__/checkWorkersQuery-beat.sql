    with beat as (
    insert into "queue_workers" as w (id, name, queues, kinds, session, node, seen_at) overriding system value
    values ($1, $2, $3::text::jsonb, $4::text::jsonb,
      $5::int4, $6::text, statement_timestamp())
    on conflict (id) do update set seen_at = excluded.seen_at, session = excluded.session,
      node = excluded.node
    returning (w.xmax = 0) as anew
    ),
    seen as materialized (
      select w.id, w.session, w.queues || jsonb_build_array(w.kinds) as work,
        extract(epoch from w.started_at)::text as started, extract(epoch from w.seen_at)::text as seen, l.free,
        case
        when greatest(w.seen_at, pg_postmaster_start_time()) < statement_timestamp()
          - case when not l.free then $7::float8 else $8::float8 end
            * interval '1 millisecond'
        then case when not l.free then 'frozen' else 'silent' end
        when l.free and pg_postmaster_start_time() < statement_timestamp()
          - $9::float8 * interval '1 millisecond'
        then 'lost'
      end as why
      from "queue_workers" as w cross join lateral (
        select case
          when w.node <> (select c.system_identifier::text from pg_control_system() as c) then null
          when w.session = pg_backend_pid() then not (w.id = $10::int8 or hashtextextended($11::text::regclass::oid::text, w.id) = any(array(
            select a.classid::int8 << 32 | a.objid::int8 from pg_locks as a
            where a.pid = pg_backend_pid() and a.locktype = 'advisory' and a.mode = 'ExclusiveLock')))
          when w.session is not null then pg_try_advisory_xact_lock_shared(hashtextextended($12::text::regclass::oid::text, w.id))
        end as free
      ) as l
    )
    select own.*, pg_backend_pid() as pid, extract(epoch from pg_postmaster_start_time())::text as server,
      extract(epoch from statement_timestamp())::text as clock, g.id, g.seen, g.why, g.session
    from (
      select count(distinct coalesce(s.session, -s.id)) as workers,
        count(*) filter (where s.work = (
          select m.work from seen as m where m.id = $13::int8
        )) as crew,
        max(s.started) filter (where s.id = $14::int8) as started,
        bool_or(s.free) filter (where s.id = $15::int8) as unlocked
      from seen as s
    ) as own
    left join seen as g on g.why is not null and g.id <> $16::int8
-- $1 = 42
-- $2 = "mail"
-- $3 = "[\"mail\"]"
-- $4 = "[\"mail\"]"
-- $5 = 4711
-- $6 = "mail"
-- $7 = 60000
-- $8 = 30000
-- $9 = 10000
-- $10 = 42
-- $11 = "\"queue_workers\""
-- $12 = "\"queue_workers\""
-- $13 = 42
-- $14 = 42
-- $15 = 42
-- $16 = 42
