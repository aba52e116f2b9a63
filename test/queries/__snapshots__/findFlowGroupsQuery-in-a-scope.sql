    with batches as materialized (
      select b.id from "queue_batches" as b where b.flow_id = $1::int8
      order by b.id limit $2::int4
    ),
    waits as materialized (
      select w.job_id, w.queue, string_agg(w.batch_id::text, ', ' order by w.batch_id) as after,
        bool_or(w.policy = 'cancel') as cancels
      from (
        select w.* from batches as b join "queue_waits" as w on w.batch_id = b.id
        where w.policy in ('run', 'cancel') limit $3::int4
      ) as w
      group by w.job_id, w.queue
    ),
    members as (
      select j.* from batches as b cross join lateral (
        select j.id, j.queue, j.kind, j.batch_id, case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end as state from "queue_jobs" as j
        where j.batch_id between b.id and b.id and j.queue in (
        select jsonb_array_elements_text($4::text::jsonb))
        order by j.batch_id limit $5::int4
      ) as j
      union all
      select r.* from batches as b cross join lateral (
        select r.job_id, r.queue, r.kind, r.batch_id, r.state from "queue_results" as r
        where r.batch_id between b.id and b.id and r.queue in (
        select jsonb_array_elements_text($6::text::jsonb))
        order by r.batch_id limit $7::int4
      ) as r
      union all
      select j.id, j.queue, j.kind, null::int8, case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end
      from waits as w join "queue_jobs" as j on j.queue = w.queue and j.id = w.job_id
      where j.batch_id is null and j.queue in (
        select jsonb_array_elements_text($8::text::jsonb))
      union all
      select r.job_id, r.queue, r.kind, null::int8, r.state
      from waits as w join "queue_results" as r on r.queue = w.queue and r.job_id = w.job_id
      where r.batch_id is null and r.queue in (
        select jsonb_array_elements_text($9::text::jsonb))
    )
    select m.batch_id, m.kind, coalesce(m.after, '') as after, coalesce(bool_or(m.cancels), false) as cancels,
      min(m.id) as first_id, count(*) filter (where m.state = 'waiting') as waiting, count(*) filter (where m.state = 'scheduled') as scheduled, count(*) filter (where m.state = 'due') as due, count(*) filter (where m.state = 'running') as running, count(*) filter (where m.state = 'completed') as completed, count(*) filter (where m.state = 'discarded') as discarded, count(*) filter (where m.state = 'cancelled') as cancelled
    from (
      select m.*, w.after, w.cancels from (select * from members limit $10::int4) as m
      full join waits as w on w.job_id = m.id and w.queue = m.queue offset 0
    ) as m
    where m.id is not null
    group by m.batch_id, m.kind, coalesce(m.after, '')
    order by min(m.id) limit $11::int4
-- $1 = 42
-- $2 = 2000
-- $3 = 20000
-- $4 = "[\"mail\"]"
-- $5 = 5000
-- $6 = "[\"mail\"]"
-- $7 = 5000
-- $8 = "[\"mail\"]"
-- $9 = "[\"mail\"]"
-- $10 = 20000
-- $11 = 1001
