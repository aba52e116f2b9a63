    with waits as materialized (
      select w.job_id as id, w.queue, count(*) as open from "queue_batches" as b
      join "queue_waits" as w on w.batch_id = b.id
      where b.flow_id = $1::int8 and b.ended_at is null and w.policy in ('run', 'cancel')
      group by w.job_id, w.queue
    ),
    live as materialized (
      select i.id, i.queue, i.open, coalesce(j.blockers, 0) = 0 or j.cancel_reason is not null as anew,
        j.worker_id is null and coalesce(j.cancel_reason = $2, true)
          and (
            j.id in (select unnest($3::text::int8[])) or j.blockers > 0
            or (j.run_at <= statement_timestamp() and not (j.attempt > 0 or exists (
        select from "queue_steps" as s where s.job_id = j.id and s.queue = j.queue
      )))
          ) as parks,
        j.worker_id is not null and j.blockers > 0 as held
      from waits as i join "queue_jobs" as j on j.queue = i.queue and j.id = i.id
      order by j.id for no key update of j
    )
    update "queue_jobs" as j
    set blockers = i.open::int4, cancel_reason = case when i.held then j.cancel_reason end,
      run_at = case when i.anew and i.parks then 'infinity' else j.run_at end
    from live as i where j.queue = i.queue and j.id = i.id and (i.parks or i.held)
    returning j.id
-- $1 = 42
-- $2 = "A job that it waited for was discarded or cancelled"
-- $3 = "{42}"
