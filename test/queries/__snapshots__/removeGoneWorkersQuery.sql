    with unchanged as materialized (
      select w.id, w.session, w.node, w.seen_at from "queue_workers" as w
      where (w.id, extract(epoch from w.seen_at)::text) in (select i.id, i.seen from (
        select r.id, r.seen, r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (id int8, seen text))
          with ordinality as r(id, seen, place)) as i)
      for update skip locked
    ),
    gone as materialized (
      select w.id, case
        when greatest(w.seen_at, pg_postmaster_start_time()) < statement_timestamp()
          - case when not l.free then $2::float8 else $3::float8 end
            * interval '1 millisecond'
        then case when not l.free then 'frozen' else 'silent' end
        when l.free and pg_postmaster_start_time() < statement_timestamp()
          - $4::float8 * interval '1 millisecond'
        then 'lost'
      end as why from unchanged as w cross join lateral (
        select case
          when w.node <> (select c.system_identifier::text from pg_control_system() as c) then null
          when w.session = pg_backend_pid() then not (hashtextextended($5::text::regclass::oid::text, w.id) = any(array(
            select a.classid::int8 << 32 | a.objid::int8 from pg_locks as a
            where a.pid = pg_backend_pid() and a.locktype = 'advisory' and a.mode = 'ExclusiveLock')))
          when w.session is not null then pg_try_advisory_xact_lock_shared(hashtextextended($6::text::regclass::oid::text, w.id))
        end as free
      ) as l
    )
    delete from "queue_workers" as w
    where w.id = any(array(select g.id from gone as g where g.why is not null))
    returning w.id, w.name
-- $1 = "[{\"id\":42,\"seen\":\"1709210096.789\"}]"
-- $2 = 60000
-- $3 = 30000
-- $4 = 10000
-- $5 = "\"queue_workers\""
-- $6 = "\"queue_workers\""
