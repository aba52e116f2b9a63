    with locked as materialized (
      select b.id, b.ended_at is null as open, b.failed
      from "queue_batches" as b
      where b.id = any($1::text::int8[])
      order by b.id for no key update of b
    ),
    marked as (
      update "queue_batches" as b set waiting = $2::text
      where b.id = any(array(select id from locked)) and b.waiting is distinct from $3::text
    ),
    waits as materialized (
      select case when count(*) filter (where open) > 0
        then count(*) filter (where open) else 0 end as open
      from locked
    ),
    holder as (
      update "queue_jobs" as j
      set blockers = case when waits.open = 0 then j.blockers
        else greatest(case when j.blockers < 0 then j.blockers end, -waits.open) end::int4
      from waits
      where j.queue = $4 and j.id = $5::int8
        and j.worker_id is not distinct from $6::int8 and j.fence = $7::int8
      returning j.id
    )
    select waits.open, exists (select from holder) as held from waits
-- $1 = "{42,43}"
-- $2 = "end"
-- $3 = "end"
-- $4 = "mail"
-- $5 = 42
-- $6 = null
-- $7 = 1
