    with locked as materialized (
      select b.id, b.ended_at is null as open, b.failed
      from "queue_batches" as b
      where b.id = any($1::text::int8[])
      order by b.id for no key update of b
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
      where j.queue = $2 and j.id = $3::int8
        and j.worker_id is not distinct from $4::int8 and j.fence = $5::int8
      returning j.id
    ),
    marked as (
      update "queue_batches" as b set waiting = $6::text
      where b.id = any(array(select id from locked where exists (select from holder)))
        and b.waiting is distinct from $7::text
    )
    select waits.open, exists (select from holder) as held from waits
-- $1 = "{42,43}"
-- $2 = "mail"
-- $3 = 42
-- $4 = null
-- $5 = 1
-- $6 = "end"
-- $7 = "end"
