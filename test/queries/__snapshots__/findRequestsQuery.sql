    select p.queue, null::int8 as id, null::int8 as fence, null::bool as held,
      null::text as cancel_reason
    from "queue_pauses" as p
    where p.queue = any(array(select jsonb_array_elements_text($1::text::jsonb)))
    union all
    select i.queue, i.id, i.fence, j.id is not null as held,
      coalesce(j.cancel_reason, r.reason) as cancel_reason
    from rows from (
      unnest($2::text::int8[]), unnest($3::text::int8[]),
      jsonb_array_elements_text($4::text::jsonb)
    ) as i(id, fence, queue)
    left join lateral (
      select j.id, j.cancel_reason from "queue_jobs" as j
      where j.queue = $5::text and j.id = i.id and j.fence = i.fence and j.worker_id = $6::int8
      limit 1
    ) as j on true
    left join lateral (
      select r.errors -> -1 ->> 'message' as reason from "queue_results" as r
      where j.id is null and r.queue = $7::text and r.job_id = i.id and r.fence = i.fence
        and r.state = 'cancelled'
      limit 1
    ) as r on true
    where j.id is null or j.cancel_reason is not null
-- $1 = "[\"mail\",\"mail, too\"]"
-- $2 = "{42}"
-- $3 = "{1}"
-- $4 = "[\"mail\"]"
-- $5 = "mail"
-- $6 = 42
-- $7 = "mail"
