    select w.id, case
        when greatest(w.seen_at, pg_postmaster_start_time()) < statement_timestamp()
          - case when not l.free then $1::float8 else $2::float8 end
            * interval '1 millisecond'
        then case when not l.free then 'frozen' else 'silent' end
        when l.free and pg_postmaster_start_time() < statement_timestamp()
          - $3::float8 * interval '1 millisecond'
        then 'lost'
      end as why
    from (
        select k.id, k.session, k.node, null::jsonb as queues, null::jsonb as kinds,
          to_timestamp(k.started::float8) as started_at, to_timestamp(k.seen::float8) as seen_at
        from jsonb_to_recordset($4::text::jsonb)
          as k(id int8, session int4, node text, started text, seen text)
      ) as w cross join lateral (
        select case
          when w.node <> (select c.system_identifier::text from pg_control_system() as c) then null
          when w.session = pg_backend_pid() then not (hashtextextended($5::text::regclass::oid::text, w.id) = any(array(
            select a.classid::int8 << 32 | a.objid::int8 from pg_locks as a
            where a.pid = pg_backend_pid() and a.locktype = 'advisory' and a.mode = 'ExclusiveLock')))
          when w.session is not null then pg_try_advisory_xact_lock_shared(hashtextextended($6::text::regclass::oid::text, w.id))
        end as free
      ) as l
-- $1 = 60000
-- $2 = 30000
-- $3 = 10000
-- $4 = "[{\"id\":42,\"session\":4711,\"node\":\"mail\",\"started\":\"1709210096.789\",\"seen\":\"1709210096.789\"}]"
-- $5 = "\"queue_workers\""
-- $6 = "\"queue_workers\""
