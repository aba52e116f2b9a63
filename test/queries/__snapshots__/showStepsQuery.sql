    select s.name, s.kind, s.signal, s.error, s.attempts, left(o.text, $1::int4) as output_text,
      length(o.text) as output_length, s.count::float8 as count, date_part('epoch', s.until) * 1000 as until,
      date_part('epoch', s.started_at) * 1000 as started_at,
      date_part('epoch', case when s.kind = 'sleep' and s.until <= statement_timestamp() then s.until
        else s.ended_at end) * 1000 as ended_at,
      jsonb_path_query_array(o.enqueued, '$.ids[0 to 9]')::text as child_ids,
      jsonb_array_length(o.enqueued -> 'ids') as children, b.ended, b.failed, b.awaited
    from (
      select s.*, count(*) over () as count from "queue_steps" as s
      where s.job_id = $2::int8 and s.queue = $3
      order by s.started_at desc, s.name desc
      limit $4::int4
    ) as s
    cross join lateral (
      select jsonb_pretty(s.output) as text, case when s.kind = 'enqueue' then s.output end as enqueued
    ) as o
    left join lateral (
      select (b.total - b.pending)::float8 as ended, b.failed::float8 as failed,
        b.waiting is not null and b.ended_at is null as awaited
      from "queue_waits" as w join "queue_batches" as b on b.id = w.batch_id
      where w.batch_id = (o.enqueued ->> 'batch')::int8
        and (w.job_id = s.job_id and w.queue = s.queue) is true
        and w.policy in ('parent', 'detached', 'forked')
    ) as b on true
    order by s.started_at, s.name
-- $1 = 1000
-- $2 = 42
-- $3 = "mail"
-- $4 = 200
