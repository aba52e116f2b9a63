    with locked as materialized (
      select b.id, b.ended_at is null as open, b.failed
      from "queue_batches" as b cross join set_config('lock_timeout', $1::text, true) as patience
      where b.id = any($2::text::int8[])
      order by b.id for no key update of b
    ),
    waits as materialized (
      select case when count(*) filter (where open) > 0 and not bool_or(failed > 0)
        then count(*) filter (where open) else 0 end as open
      from locked
    ),
    holder as (
      update "queue_jobs" as j
      set blockers = case when waits.open = 0 then j.blockers
        else greatest(case when j.blockers < 0 then j.blockers end, -waits.open) end::int4
      from waits
      where j.queue = $3 and j.id = $4::int8
        and j.worker_id is not distinct from $5::int8 and j.fence = $6::int8
      returning j.id
    ),
    marked as (
      update "queue_batches" as b set waiting = $7::text
      where b.id = any(array(select id from locked where exists (select from holder)))
        and b.waiting is distinct from $8::text
    )
    select waits.open, exists (select from holder) as held from waits
-- $1 = "100ms"
-- $2 = "{42,43}"
-- $3 = "mail"
-- $4 = 42
-- $5 = 42
-- $6 = 1
-- $7 = "failure"
-- $8 = "failure"
