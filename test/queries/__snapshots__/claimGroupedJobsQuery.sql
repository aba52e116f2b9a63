    with free as materialized (
        select n.ctid as at, n.id, n.due_at, n.group_keys from "queue_notes" as n
        where n.queue = $1 and n.due_at <= statement_timestamp()
        order by n.due_at, n.id limit (
          select count(*) from (
            select sum(n.keys) over (order by n.due_at, n.id) - n.keys as before from (
              select n.due_at, n.id, cardinality(n.group_keys) as keys from "queue_notes" as n
              where n.queue = $2 and n.due_at <= statement_timestamp()
              order by n.due_at, n.id limit (select $3::int8 + 8)
            ) as n
          ) as n
          where n.before < $4::int8 + 8
        )
        for update of n skip locked
    ),
    asked as materialized (
      select n.group_key, min(n.due_at) as due_at
      from (select n.due_at, unnest(n.group_keys) as group_key from free as n) as n
      group by n.group_key
    ),
    idle as materialized (
      select k.*, k.at is null or (
          exists (
            select from (
              select j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) as due from "queue_jobs" as j where j.queue = $5 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h
            where h.due
          ) or (
            (select count(*) from (
              select from "queue_jobs" as j where j.queue = $6 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            ) as h) >= 100
            and exists (
              select from generate_series(0, 9) as band(priority) cross join lateral (
                select from "queue_jobs" as j
                where j.queue = $7 and j.group_key = k.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
                order by j.run_at, j.id limit 1
              ) as j
            )
          )
        ) as waits
      from (
        select a.group_key, a.due_at, g.at, g.turn, g.ready_at from asked as a left join lateral (
          select g.ctid as at, g.turn, g.ready_at from "queue_groups" as g
          where g.queue = $8 and g.group_key = a.group_key
          offset 0
        ) as g on true
      ) as k
      where k.at is null or k.ready_at > statement_timestamp()
    ),
    ring as materialized (
      select r.turn as first, coalesce(r.turn, (
        select g.turn from "queue_groups" as g
        where g.queue = $9 and g.turn >= 0 and g.ready_at = 'infinity' order by g.turn desc limit 1
      ), 0) as turn
      from (select (
        select g.turn from "queue_groups" as g
        where g.queue = $10 and g.turn >= 0 and g.ready_at = '-infinity' order by g.turn limit 1
      ) as turn) as r
    ),
    seen as materialized (
      (select g.*, row_number() over (order by g.turn) * 2 + $11::int8 as place
        from (
          (select g.ctid as at, g.group_key, g.turn from "queue_groups" as g
            where g.queue = $12 and g.turn >= 0 and g.ready_at = '-infinity'
            order by g.turn limit (select $13::int8 * 2 + 32 from generate_series(1, $14::int4) as a cross join generate_series(1, $15::int4) as b cross join generate_series(1, $16::int4) as c))
          union all
          select i.at, i.group_key, i.turn from idle as i cross join ring as r
          where i.waits and i.turn > coalesce(r.first, 0)
        ) as g
        order by g.turn limit (select $17::int8 * 2 + 32))
      union all
      (select g.at, g.group_key, g.turn, row_number() over (order by g.ready_at) * 2 as place
        from (
          (select g.ctid as at, g.group_key, g.turn, g.ready_at from "queue_groups" as g
            where g.queue = $18 and g.turn >= 0 and g.ready_at > '-infinity' and g.ready_at <= statement_timestamp()
            order by g.ready_at limit (select $19::int8 + 8))
          union all
          select i.at, i.group_key, coalesce(i.turn, 0), i.due_at from idle as i cross join ring as r
          where i.waits and (i.turn > coalesce(r.first, 0)) is not true
        ) as g
        order by g.ready_at limit (select $20::int8 + 8))
    ),
    every as materialized (
      select max(l.concurrency) as concurrency, max(l.rate_limit) as rate_limit,
        max(l.rate_per_ms) as rate_per_ms, max(l.weight) as weight
      from "queue_limits" as l where l.queue = $21 and l.kind = '' and l.group_key = '*'
    ),
    locked as materialized (
      select s.place, s.at, s.group_key, coalesce(g.turn, 0) as turn,
        coalesce(g.rate_used, '{}') as rate_used, coalesce(g.held, '{}') as held,
        case when s.at is null then '-infinity' else g.bounded_since end as bounded_since
      from (select * from seen order by place) as s left join lateral (
        select g.turn, g.rate_used, g.held, g.bounded_since from "queue_groups" as g
        where g.ctid = s.at and g.queue = $22 and g.group_key = s.group_key and g.turn = s.turn
        for no key update skip locked
      ) as g on true
      where s.at is null or g.turn is not null
      limit (select $23::int8)
    ),
    ruled as not materialized (
      select l.*, coalesce(o.weight, e.weight, 1) as share_of,
        coalesce(o.concurrency, e.concurrency, $24::int4) as concurrency,
        coalesce(o.rate_limit, e.rate_limit, $25::int4) as rate_limit,
        coalesce(o.rate_per_ms, e.rate_per_ms, $26::int8) as rate_per_ms
      from locked as l cross join every as e left join "queue_limits" as o
        on o.queue = $27 and o.kind = '' and o.group_key = l.group_key
    ),
    blocking as materialized (
      select h.group_key, case when (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w)) then h.until else '-infinity' end as until
      from "queue_holds" as h
      where h.queue = $28 and h.group_key = any(array(select group_key from locked))
    ),
    counted as not materialized (
      select l.place, l.at, l.group_key, l.turn, l.share_of, l.concurrency, l.rate_limit, l.rate_per_ms,
        l.rate_used as kept, h.standing, l.bounded_since,
        h.held + b.going_on + b.waits::int4 as held, b.until as held_until,
        (ceil($29::float8 * sum(l.share_of) over w / sum(l.share_of) over ())
          - ceil($30::float8 * (sum(l.share_of) over w - l.share_of) / sum(l.share_of) over ()))::int8
          as share
      from ruled as l
      cross join lateral (
        select count(*) filter (where j.worker_id in (select w.id from "queue_workers" as w)) as held,
          array_agg(j.id) filter (where j.worker_id is not null) as standing
        from "queue_jobs" as j where j.queue = $31 and j.id = any(l.held)
      ) as h
      cross join lateral (
        select min(h.until) as until, count(h.worker_id) as going_on, count(*) > count(h.worker_id) as waits
        from "queue_holds" as h
        where h.queue = $32 and h.group_key = l.group_key and h.until > statement_timestamp()
          and (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w))
          and l.group_key in (select b.group_key from blocking as b)
      ) as b
      window w as (order by l.place rows unbounded preceding)
    ),
    open as materialized (
      select c.*, case when c.rate_limit is null then least(c.share, c.concurrency - c.held) else 0 end as room
      from counted as c where c.share > 0
    ),
    found as materialized (
      select c.place, c.group_key, j.*
      from open as c cross join lateral (
        select f.*, row_number() over () as n from (
          select f.* from (
            select h.id, h.at from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($33::text::jsonb))) is true as due from "queue_jobs" as j
              where j.queue = $34 and j.group_key = c.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit greatest(c.room, 0) + c.held + 100 + 100
            ) as h where h.due
            union all
            select j.id, j.at from generate_series(0, 9) as band(priority)
            cross join lateral (
              select j.id, j.ctid as at from "queue_jobs" as j
              where j.queue = $35 and j.group_key = c.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($36::text::jsonb))) is true
              order by j.run_at, j.id limit greatest(c.room, 0) + c.held + 100 + 16
            ) as j
            where (
              select count(*) >= greatest(c.room, 0) + c.held + 100 + 100 and count(*) filter (where h.due) < 16 from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($37::text::jsonb))) is true as due from "queue_jobs" as j
              where j.queue = $38 and j.group_key = c.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit greatest(c.room, 0) + c.held + 100 + 100
            ) as h
            ) and j.id not in (select h.id from (
              select j.id, j.ctid as at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($39::text::jsonb))) is true as due from "queue_jobs" as j
              where j.queue = $40 and j.group_key = c.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit greatest(c.room, 0) + c.held + 100 + 100
            ) as h where h.due)
            limit greatest(c.room, 0) + c.held + 100) as k
          cross join lateral (
          select j.id, j.kind, coalesce(j.weight, 1)::int8 as weight, pg_column_size(case when pg_column_compression(j.payload) is null then j.payload
        else j.payload #> '{}' end) as bytes
          from "queue_jobs" as j
          where j.ctid = k.at and j.id = k.id and j.queue = $41 and j.group_key = c.group_key
            and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and (j.kind in (select jsonb_array_elements_text($42::text::jsonb))) is true
            and j.worker_id is distinct from $43::int8
          for no key update skip locked) as f
          limit greatest(c.room, 0)
        ) as f
      ) as j
      where c.room > 0
    ),
    wanted as not materialized (
      select f.*, row_number() over (order by f.place, f.n) as rank
      from found as f
    ),
    within as materialized (
      select id, place, group_key, weight, rank from (
        select w.*,
          sum(w.bytes) over (order by w.rank rows between unbounded preceding and 1 preceding) as before
        from wanted as w
      ) as w
      where before is null or before < $44::int8
      order by rank
    ),
    turning as materialized (
      select c.at, c.group_key, case
          when c.standing is null then coalesce(c.taken_ids, '{}')
          else array(select distinct unnest(c.standing || c.taken_ids))
        end as held, 1 + greatest(c.turn, r.turn)
          + greatest(coalesce(c.taken_weight, 0), 1) * 1000 / c.share_of as turn,
        case when c.concurrency is not null then coalesce(c.bounded_since, statement_timestamp())
          end as bounded_since,
        c.kept as rate_used,
        case
          when c.held + c.taken >= c.concurrency
            then least(c.held_until, case
              when c.bounded_since < statement_timestamp() - 1000 * interval '1 millisecond' then 'infinity'
              else statement_timestamp() + 1000 * interval '1 millisecond' end)
          when c.taken < c.room then coalesce((
            with head as materialized (
              select j.run_at, j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and j.id not in (select id from within) as due from "queue_jobs" as j
              where j.queue = $45 and j.group_key = c.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) order by j.priority, j.run_at, j.id limit 100
            )
            select case
              when bool_or(h.due) then '-infinity'
              when count(*) < 100 then min(h.run_at) filter (where h.run_at > statement_timestamp())
              else (
                select min(j.run_at) from generate_series(0, 9) as band(priority)
                cross join lateral (
                  (select '-infinity'::timestamptz as run_at from "queue_jobs" as j
                    where j.queue = $46 and j.group_key = c.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2 and j.run_at <= statement_timestamp() and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w)) and j.id not in (select id from within)
                    order by j.run_at, j.id limit 1)
                  union all
                  (select j.run_at from "queue_jobs" as j
                    where j.queue = $47 and j.group_key = c.group_key and j.group_key is not null and (j.group_key is not null or j.id in (select generate_series(-10000, -1))) and j.priority = band.priority::int2
                      and j.run_at > statement_timestamp()
                    order by j.run_at, j.id limit 1)
                ) as j
              )
            end from head as h
          ), 'infinity')
          else '-infinity'
        end as ready_at
      from (
        select o.*, count(o.job_id) over jobs as taken,
          array_agg(o.job_id) filter (where o.job_id is not null) over jobs as taken_ids,
          sum(o.weight) over jobs as taken_weight
        from (
          select place, at, group_key, turn, share_of, concurrency, rate_limit, kept, held, held_until,
            standing, bounded_since, room, null as job_id, null as weight
          from open
          union all
          select place, null, null, null, null, null, null, null, null, null, null, null, null, id,
            weight
          from within
        ) as o
        window jobs as (partition by o.place)
      ) as c cross join ring as r
      where c.group_key is not null
    ),
    made as (
      insert into "queue_groups" (queue, group_key, ready_at, turn, rate_used, held, bounded_since)
      select $48::text, t.group_key, t.ready_at, t.turn, t.rate_used, t.held, t.bounded_since
      from turning as t
      where t.at is null order by t.group_key
      on conflict (queue, group_key) do nothing
      returning group_key
    ),
    beaten as materialized (
      select t.group_key from turning as t
      where t.at is null and t.group_key not in (select group_key from made)
    ),
    taken as materialized (
      select w.id, w.group_key, w.rank from within as w
      where w.group_key not in (select group_key from beaten)
    ),
    claimed as (
    update "queue_jobs" as j
    set worker_id = $49::int8, claimed_at = greatest((array[statement_timestamp()])[case
        when (j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4 = j.max_attempts or case when j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4 between 2 and j.max_attempts
            then j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4 - 1 - case when (j.errors -> -1 -> 'attempt')::int4 < j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4 then (j.errors -> -1 -> 'attempt')::int4 else 0 end else 0 end > 0)
          and (j.id = (select id from within limit $50::int8)) is not true then 2
        else 1
      end]), attempt = j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4, fence = j.fence + 1, waiting_key = null
    where j.queue = $51 and j.id = any(array(select id from taken))
    returning j.id, j.kind, j.payload, j.priority, j.claimed_at, j.attempt, j.max_attempts, j.fence,
      j.unique_key, j.errors, j.metadata, j.run_at, j.created_at, j.cancel_reason
    ),
    unused as materialized (
      select a.group_key from asked as a
      where a.group_key not in (select t.group_key from turning as t)
        and a.group_key not in (select i.group_key from idle as i where not i.waits)
      union all
      select b.group_key from beaten as b
    ),
    heeded as materialized (
      select n.at, n.id, n.due_at, cardinality(n.group_keys) as offered, array(
          select k from unnest(n.group_keys) as k where k in (select u.group_key from unused as u)
        ) as later
      from free as n
    ),
    removed as (
      delete from "queue_notes" as n using heeded as h
      where n.ctid = h.at and n.queue = $52 and n.id = h.id and cardinality(h.later) < h.offered
    ),
    kept as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select $53::text, h.due_at, h.later from heeded as h
      where cardinality(h.later) between 1 and h.offered - 1
    ),
    turned as (
      update "queue_groups" as g set turn = t.turn, ready_at = t.ready_at, rate_used = t.rate_used,
        held = t.held, bounded_since = t.bounded_since
      from turning as t
      where g.ctid = t.at and (g.queue = $54 and g.group_key = t.group_key) is true
    ),
    over as materialized (
      select h.group_key, h.job_id from "queue_holds" as h
      where h.queue = $55 and (h.until <= statement_timestamp() or not (h.worker_id is null or h.worker_id in (select w.id from "queue_workers" as w)))
        and h.group_key = any(array(select group_key from blocking where until <= statement_timestamp()))
      for update skip locked
    ),
    swept as (
      delete from "queue_holds" as h
      where h.queue = $56 and h.group_key = any(array(select group_key from over))
        and ((h.group_key, h.job_id) in (select group_key, job_id from over)) is true
    )
    select one.signs, w.rank, w.group_key, a.*
    from (select concat_ws(' ', case when exists (select from turning as t where t.ready_at = '-infinity')
          or (select count(*) from seen) > (select count(*) from turning) or exists (select from beaten) then 'more' end,
        case when exists (select from turning as t where t.ready_at = '-infinity' and t.group_key not in (select w.group_key from taken as w)) then 'passed' end,
        case when exists (select from turning as t where t.ready_at > '-infinity' and t.group_key not in (select w.group_key from taken as w)) then 'aside' end,
        case when exists (select from unused) or exists (
          select from "queue_notes" as n
          where n.queue = $57 and n.due_at <= statement_timestamp() and n.id not in (select id from free)
        ) then 'left' end,
        case when (select count(*) from asked) - (select count(*) from unused) > 0 then 'used' end,
        case when exists (select from unused) or (select coalesce(sum(offered), 0) from heeded) >= $58::int8 + 8 then 'crowded' end,
        case when 3 * ((select count(*) from asked) - (select count(*) from unused)) >= (select coalesce(sum(offered), 0) from heeded) then 'usedMany' end,
        case when 2 * (select count(*) from asked) < (select coalesce(sum(offered), 0) from heeded) then 'repeated' end,
        case when exists (select from turning as t where t.bounded_since is not null) then 'bounded' end,
        case when exists (select from open as o where o.rate_limit is not null) then 'rated' end) as signs) as one
    left join (taken as w full join (
    select j.id, j.kind, j.payload, pg_column_size(case when pg_column_compression(j.payload) is null then j.payload
        else j.payload #> '{}' end) as payload_bytes, j.priority,
      j.claimed_at is not null as begun, j.attempt, j.max_attempts, j.fence, j.unique_key,
      nullif(j.errors, '[]') as errors, nullif(j.metadata, '{}') as metadata,
      date_part('epoch', j.run_at) * 1000 as run_at, date_part('epoch', j.created_at) * 1000 as created_at,
      date_part('epoch', statement_timestamp()) * 1000 as claimed_at,
      j.cancel_reason
    from claimed as j) as a on a.id = w.id) on true
-- $1 = "mail"
-- $2 = "mail"
-- $3 = 10
-- $4 = 10
-- $5 = "mail"
-- $6 = "mail"
-- $7 = "mail"
-- $8 = "mail"
-- $9 = "mail"
-- $10 = "mail"
-- $11 = 1
-- $12 = "mail"
-- $13 = 10
-- $14 = 1
-- $15 = 1
-- $16 = 1
-- $17 = 10
-- $18 = "mail"
-- $19 = 10
-- $20 = 10
-- $21 = "mail"
-- $22 = "mail"
-- $23 = 10
-- $24 = 2
-- $25 = 10
-- $26 = 1000
-- $27 = "mail"
-- $28 = "mail"
-- $29 = 10
-- $30 = 10
-- $31 = "mail"
-- $32 = "mail"
-- $33 = "[\"mail\"]"
-- $34 = "mail"
-- $35 = "mail"
-- $36 = "[\"mail\"]"
-- $37 = "[\"mail\"]"
-- $38 = "mail"
-- $39 = "[\"mail\"]"
-- $40 = "mail"
-- $41 = "mail"
-- $42 = "[\"mail\"]"
-- $43 = 42
-- $44 = 8388608
-- $45 = "mail"
-- $46 = "mail"
-- $47 = "mail"
-- $48 = "mail"
-- $49 = 42
-- $50 = 0
-- $51 = "mail"
-- $52 = "mail"
-- $53 = "mail"
-- $54 = "mail"
-- $55 = "mail"
-- $56 = "mail"
-- $57 = "mail"
-- $58 = 10
