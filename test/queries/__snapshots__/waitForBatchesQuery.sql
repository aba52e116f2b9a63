    with locked as materialized (
      select b.id, b.ended_at is null as open, b.failed
      from "queue_batches" as b cross join set_config('lock_timeout', $1::text, true) as patience
      where b.id = any($2::text::int8[])
      order by b.id for no key update of b
    ),
    marked as (
      update "queue_batches" as b set waiting = $3::text
      where b.id = any(array(select id from locked)) and b.waiting is distinct from $4::text
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
      where j.queue = $5 and j.id = $6::int8
        and j.worker_id is not distinct from $7::int8 and j.fence = $8::int8
      returning j.id
    )
    select waits.open, exists (select from holder) as held from waits
-- $1 = "100ms"
-- $2 = "{42,43}"
-- $3 = "failure"
-- $4 = "failure"
-- $5 = "mail"
-- $6 = 42
-- $7 = 42
-- $8 = 1
