    select u.kind, (
      select coalesce(sum((e.lease ->> 0)::int8), 0) from jsonb_each(u.leases) as e(worker, lease)
      where e.worker in (select w.id::text from "queue_workers" as w)
    )::float8 as slots
    from "queue_usage" as u where u.queue = $1
-- $1 = "mail"
