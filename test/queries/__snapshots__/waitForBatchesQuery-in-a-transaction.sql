    with locked as materialized (
      select b.id, b.ended_at is null as open, b.failed, b.ended_at is null and (
          select w.policy from "queue_waits" as w
          where w.batch_id = b.id and (w.job_id = $1::int8 and w.queue = $2) is true
            and w.policy in ('parent', 'detached')
        ) is null as foreign_one
      from "queue_batches" as b
      where b.id = any($3::text::int8[])
      order by b.id for no key update of b
    ),
    waits as materialized (
      select case when count(*) filter (where open) > 0
        then count(*) filter (where open) else 0 end as open, bool_or(foreign_one) as foreign_one
      from locked
    ),
    holder as (
      update "queue_jobs" as j
      set blockers = case when waits.open = 0 then j.blockers
        else greatest(case when j.blockers < 0 then j.blockers end, -waits.open) end::int4
      from waits
      where j.queue = $4 and j.id = $5::int8
        and j.worker_id is not distinct from $6::int8 and j.fence = $7::int8 and waits.foreign_one is not true
      returning j.id
    ),
    marked as (
      update "queue_batches" as b set waiting = $8::text
      where b.id = any(array(
          select l.id from locked as l cross join waits where waits.open > 0 and exists (select from holder)
        ))
        and b.waiting is distinct from $9::text
    )
    select waits.open, waits.foreign_one, exists (select from holder) as held from waits
-- $1 = 42
-- $2 = "mail"
-- $3 = "{42,43}"
-- $4 = "mail"
-- $5 = 42
-- $6 = null
-- $7 = 1
-- $8 = "end"
-- $9 = "end"
