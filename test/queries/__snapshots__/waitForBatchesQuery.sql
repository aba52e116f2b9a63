    with locked as materialized (
      select b.id, b.ended_at is null as open, b.failed, b.ended_at is null and (
          select w.policy from "queue_waits" as w
          where w.batch_id = b.id and (w.job_id = $1::int8 and w.queue = $2) is true
            and w.policy in ('parent', 'detached')
        ) is null as foreign_one
      from "queue_batches" as b cross join set_config('lock_timeout', $3::text, true) as patience
      where b.id = any($4::text::int8[])
      order by b.id for no key update of b
    ),
    waits as materialized (
      select case when count(*) filter (where open) > 0 and not bool_or(failed > 0)
        then count(*) filter (where open) else 0 end as open, bool_or(foreign_one) as foreign_one
      from locked
    ),
    holder as (
      update "queue_jobs" as j
      set blockers = case when waits.open = 0 then j.blockers
        else greatest(case when j.blockers < 0 then j.blockers end, -waits.open) end::int4
      from waits
      where j.queue = $5 and j.id = $6::int8
        and j.worker_id is not distinct from $7::int8 and j.fence = $8::int8 and waits.foreign_one is not true
      returning j.id
    ),
    marked as (
      update "queue_batches" as b set waiting = $9::text
      where b.id = any(array(
          select l.id from locked as l cross join waits where waits.open > 0 and exists (select from holder)
        ))
        and b.waiting is distinct from $10::text
    )
    select waits.open, waits.foreign_one, exists (select from holder) as held from waits
-- $1 = 42
-- $2 = "mail"
-- $3 = "100ms"
-- $4 = "{42,43}"
-- $5 = "mail"
-- $6 = 42
-- $7 = 42
-- $8 = 1
-- $9 = "failure"
-- $10 = "failure"
