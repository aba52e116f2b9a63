    with seen as materialized (
      select w.id, w.session, w.queues || jsonb_build_array(w.kinds) as work,
        extract(epoch from w.started_at)::text as started, extract(epoch from w.seen_at)::text as seen, l.free,
        case
        when greatest(w.seen_at, pg_postmaster_start_time()) < statement_timestamp()
          - case when not l.free then $1::float8 else $2::float8 end
            * interval '1 millisecond'
        then case when not l.free then 'frozen' else 'silent' end
        when l.free and pg_postmaster_start_time() < statement_timestamp()
          - $3::float8 * interval '1 millisecond'
        then 'lost'
      end as why
      from "queue_workers" as w cross join lateral (
        select case
          when w.node <> (select c.system_identifier::text from pg_control_system() as c) then null
          when w.session = pg_backend_pid() then not (w.id = $4::int8 or hashtextextended($5::text::regclass::oid::text, w.id) = any(array(
            select a.classid::int8 << 32 | a.objid::int8 from pg_locks as a
            where a.pid = pg_backend_pid() and a.locktype = 'advisory' and a.mode = 'ExclusiveLock')))
          when w.session is not null then pg_try_advisory_xact_lock_shared(hashtextextended($6::text::regclass::oid::text, w.id))
        end as free
      ) as l
    )
    select own.*, pg_backend_pid() as pid, extract(epoch from pg_postmaster_start_time())::text as server,
      extract(epoch from statement_timestamp())::text as clock, g.id, g.seen, g.why, g.session
    from (
      select count(distinct coalesce(s.session, -s.id)) as workers,
        count(*) filter (where s.work = (
          select m.work from seen as m where m.id = $7::int8
        )) as crew,
        max(s.started) filter (where s.id = $8::int8) as started,
        bool_or(s.free) filter (where s.id = $9::int8) as unlocked
      from seen as s
    ) as own
    left join seen as g on g.why is not null and g.id <> $10::int8
-- $1 = 60000
-- $2 = 30000
-- $3 = 10000
-- $4 = 42
-- $5 = "\"queue_workers\""
-- $6 = "\"queue_workers\""
-- $7 = 42
-- $8 = 42
-- $9 = 42
-- $10 = 42
