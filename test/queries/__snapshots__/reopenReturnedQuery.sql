    with own as materialized (
      select w.batch_id from unnest($1::text::int8[]) as i(id)
      cross join lateral (
        select w.batch_id from "queue_waits" as w
        where w.batch_id = i.id and (w.job_id = $2::int8 and w.queue = $3) is true
          and w.policy in ('parent', 'detached')
        offset 0
      ) as w
      where exists (select from "queue_jobs" as j where j.queue = $4 and j.id = $5::int8
        and j.worker_id is not distinct from $6::int8 and j.fence = $7::int8)
    ),
    locked as materialized (
      select b.id from "queue_batches" as b cross join set_config('lock_timeout', $8::text, true) as patience
      where b.id = any(array(select batch_id from own)) and b.ended_at is not null
      order by b.id for no key update of b
    ),
    requested as (
      update "queue_tallies" as t set cancel_reason = null
      where t.batch_id = any(array(select id from locked)) and t.cancel_reason is not null
    ),
    reopened as (
      update "queue_batches" as b set ended_at = null, cancel_reason = null
      where b.id = any(array(select id from locked))
    ),
    tallied as (
      insert into "queue_tallies" (batch_id) select id from locked
    )
    select o.batch_id from own as o
-- $1 = "{42,43}"
-- $2 = 42
-- $3 = "mail"
-- $4 = "mail"
-- $5 = 42
-- $6 = 42
-- $7 = 1
-- $8 = "100ms"
