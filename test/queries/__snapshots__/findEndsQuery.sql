    select r.job_id, r.kind, r.state, r.output, r.errors -> -1 ->> 'message' as message
    from "queue_results" as r
    where r.batch_id = any($1::text::int8[])
    order by r.job_id
-- $1 = "{42}"
