    select i.place::float8 as place, coalesce(s.concurrency, i.declared)::float8 as max,
      v.has::float8 as has, v.total::float8 as total, v.sharing::float8 as sharing,
      v.least_lacking::float8 as least_lacking, s.rate_limit, s.rate_per_ms::float8 as rate_per_ms
    from (
        select r.queue, r.kind, r.declared, r.place as place
        from rows from (jsonb_to_recordset($1::text::jsonb) as (queue text, kind text, declared int4))
          with ordinality as r(queue, kind, declared, place)) as i
    left join lateral (
      select s.concurrency, s.rate_limit, s.rate_per_ms from "queue_limits" as s
      where s.queue = i.queue and s.kind = i.kind and s.group_key = '' limit 1
    ) as s on true
    cross join lateral (
      select coalesce(max(v.has) filter (where v.worker = $2::text), 0) as has,
        coalesce(sum(v.has), 0) as total,
        count(*) filter (where v.has > 0 or v.wants > 0) as sharing,
        min(v.has) filter (where v.worker <> $3::text and v.has < v.wants) as least_lacking
      from (
        select e.worker, (e.lease ->> 0)::int8 as has, (e.lease ->> 1)::int8 as wants
        from "queue_usage" as u cross join jsonb_each(u.leases) as e(worker, lease)
        where u.queue = $4::text and u.kind = i.kind
          and e.worker in (select w.id::text from "queue_workers" as w)
        offset 0
      ) as v
    ) as v
-- $1 = "[{\"queue\":\"mail\",\"kind\":\"\",\"declared\":10},{\"queue\":\"mail\",\"kind\":\"mail\",\"declared\":null}]"
-- $2 = "42"
-- $3 = "42"
-- $4 = "mail"
