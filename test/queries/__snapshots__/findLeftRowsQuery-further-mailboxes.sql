    with slice as materialized (
      select w.job_id, w.queue, w.name from "queue_mailboxes" as w
      where (w.job_id, w.queue, w.name) > ($1::int8, $2::text, $3::text)
      order by w.job_id, w.queue, w.name limit $4::int4
    )
    select s.job_id, s.queue, s.name,
      not exists (select from "queue_jobs" as j where j.id = s.job_id and j.queue = s.queue)
        and not exists (select from "queue_results" as r where r.job_id = s.job_id and r.queue = s.queue)
        as gone
    from slice as s order by s.job_id, s.queue, s.name
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 1000
