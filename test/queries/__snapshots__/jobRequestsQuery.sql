    select i.queue, i.id, i.fence, j.id is not null as held,
      coalesce(j.cancel_reason, r.reason) as cancel_reason
    from rows from (
      unnest($1::text::int8[]), unnest($2::text::int8[]),
      jsonb_array_elements_text($3::text::jsonb)
    ) as i(id, fence, queue)
    left join lateral (
      select j.id, j.cancel_reason from "queue_jobs" as j
      where j.queue = $4::text and j.id = i.id and j.fence = i.fence and j.worker_id = $5::int8
      limit 1
    ) as j on true
    left join lateral (
      select r.errors -> -1 ->> 'message' as reason from "queue_results" as r
      where j.id is null and r.queue = $6::text and r.job_id = i.id and r.fence = i.fence
        and r.state = 'cancelled'
      limit 1
    ) as r on true
    where j.id is null or j.cancel_reason is not null
-- $1 = "{42}"
-- $2 = "{1}"
-- $3 = "[\"mail\"]"
-- $4 = "mail"
-- $5 = 42
-- $6 = "mail"
