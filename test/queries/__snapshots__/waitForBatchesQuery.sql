    with own as materialized (
      select w.batch_id, j.claimed_at from "queue_jobs" as j
      join "queue_waits" as w on w.job_id = j.id and w.queue = j.queue and w.policy in ('parent', 'detached')
      where j.queue = $1 and j.id = $2::int8
        and j.worker_id is not distinct from $3::int8 and j.fence = $4::int8
    ),
    locked as materialized (
      select b.id, b.id = any($5::text::int8[]) as asked, b.ended_at is null as open, b.failed,
        case when b.ended_at is null then $6::text
          when b.ended_at >= (select min(claimed_at) from own) then b.waiting end as waiting
      from "queue_batches" as b cross join set_config('lock_timeout', $7::text, true) as patience
      where b.id = any(array(select unnest($8::text::int8[]) union select batch_id from own))
        and (b.id = any($9::text::int8[])
          or (b.waiting is not null and b.ended_at < (select min(claimed_at) from own)))
      order by b.id for no key update of b
    ),
    marked as (
      update "queue_batches" as b set waiting = l.waiting
      from locked as l where b.id = l.id and b.waiting is distinct from l.waiting
    ),
    waits as materialized (
      select case when count(*) filter (where open) > 0 and not bool_or(failed > 0)
        then count(*) filter (where open) else 0 end as open
      from locked where asked
    ),
    holder as (
      update "queue_jobs" as j
      set blockers = case when waits.open > 0 then least(nullif(j.blockers, 0), waits.open)
        else j.blockers end::int4
      from waits
      where j.queue = $10 and j.id = $11::int8
        and j.worker_id is not distinct from $12::int8 and j.fence = $13::int8
      returning j.id
    )
    select waits.open, exists (select from holder) as held from waits
-- $1 = "mail"
-- $2 = 42
-- $3 = 42
-- $4 = 1
-- $5 = "{42,43}"
-- $6 = "failure"
-- $7 = "100ms"
-- $8 = "{42,43}"
-- $9 = "{42,43}"
-- $10 = "mail"
-- $11 = 42
-- $12 = 42
-- $13 = 1
