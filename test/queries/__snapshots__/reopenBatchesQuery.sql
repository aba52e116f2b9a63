    with batches as materialized (
      select b.id, b.pending, b.failed from "queue_batches" as b where b.flow_id = $1::int8
    ),
    members as materialized (
      select r.job_id, r.batch_id, r.state from "queue_results" as r
      where r.batch_id = any(array(select id from batches)) and r.state in ('discarded', 'cancelled')
    ),
    unended as materialized (
      select batch_id as id from members
      union
      select b.id from batches as b
      where b.pending > 0 or exists (select from "queue_tallies" as t where t.batch_id = b.id)
        or b.failed > 0 and exists (
          select w.job_id from "queue_waits" as w join members as m on m.job_id = w.job_id
          where w.batch_id = b.id and w.policy = 'cancel'
        )
    ),
    forgotten as (
      update "queue_batches" as b set waiting = null
      where b.waiting is not null and b.id = any(array(
        select w.batch_id from "queue_waits" as w
        where w.job_id = any(array(select job_id from members)) and w.policy in ('parent', 'detached')
      ))
    ),
    requested as (
      update "queue_tallies" as t set cancel_reason = null
      where t.batch_id = any(array(select id from batches)) and t.cancel_reason is not null
    ),
    tallied as (
      insert into "queue_tallies" (batch_id) select id from unended
    ),
    reopened as (
      update "queue_batches" as b
      set cancel_reason = null,
        ended_at = case when b.id in (select id from unended) then null else b.ended_at end
      where b.id = any(array(select id from batches))
        and (b.cancel_reason is not null or b.id in (select id from unended))
    )
    select m.job_id, m.state from members as m order by m.job_id
-- $1 = 42
