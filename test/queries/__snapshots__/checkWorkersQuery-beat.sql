    with beat as (
    insert into "queue_workers" as w (id, name, queues, session) overriding system value
    values ($1, $2, $3::text::jsonb, $4::text::bool)
    on conflict (id) do update set seen_at = statement_timestamp(), session = excluded.session
    returning (w.xmax = 0) as anew
    ),
    seen as materialized (
      select w.id, extract(epoch from w.started_at)::text as started, extract(epoch from w.seen_at)::text as seen, l.free, case
        when greatest(w.seen_at, pg_postmaster_start_time()) < statement_timestamp()
          - case when not l.free then $5::float8 else $6::float8 end * interval '1 millisecond'
        then case when not l.free then 'frozen' else 'silent' end
        when l.free and pg_postmaster_start_time() < statement_timestamp() - $7::float8 * interval '1 millisecond'
        then 'lost'
      end as why
      from "queue_workers" as w cross join lateral (
        select case when w.session then pg_try_advisory_xact_lock_shared(hashtextextended($8::text::regclass::oid::text, w.id)) end as free
      ) as l
    )
    select own.*, pg_backend_pid() as pid, g.id, g.seen, g.why
    from (
      select count(*) as workers, max(s.started) filter (where s.id = $9::int8) as started,
        bool_or(s.free) filter (where s.id = $10::int8) as unlocked
      from seen as s
    ) as own
    left join seen as g on g.why is not null and g.id <> $11::int8
-- $1 = 42
-- $2 = "mail"
-- $3 = "[\"mail\"]"
-- $4 = "true"
-- $5 = 60000
-- $6 = 30000
-- $7 = 10000
-- $8 = "\"queue_workers\""
-- $9 = 42
-- $10 = 42
-- $11 = 42
