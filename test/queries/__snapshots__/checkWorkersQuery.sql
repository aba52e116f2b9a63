    with seen as materialized (
      select w.id, extract(epoch from w.started_at)::text as started, extract(epoch from w.seen_at)::text as seen, l.free, case
        when greatest(w.seen_at, pg_postmaster_start_time()) < statement_timestamp()
          - case when not l.free then $1::float8 else $2::float8 end * interval '1 millisecond'
        then case when not l.free then 'frozen' else 'silent' end
        when l.free and pg_postmaster_start_time() < statement_timestamp() - $3::float8 * interval '1 millisecond'
        then 'lost'
      end as why
      from "queue_workers" as w cross join lateral (
        select case when w.session then pg_try_advisory_xact_lock_shared(hashtextextended($4::text::regclass::oid::text, w.id)) end as free
      ) as l
    )
    select own.*, pg_backend_pid() as pid, g.id, g.seen, g.why
    from (
      select count(*) as workers, max(s.started) filter (where s.id = $5::int8) as started,
        bool_or(s.free) filter (where s.id = $6::int8) as unlocked
      from seen as s
    ) as own
    left join seen as g on g.why is not null and g.id <> $7::int8
-- $1 = 60000
-- $2 = 30000
-- $3 = 10000
-- $4 = "\"queue_workers\""
-- $5 = 42
-- $6 = 42
-- $7 = 42
