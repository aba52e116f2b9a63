    with first as (
      select s.started_at from "queue_steps" as s
      where s.job_id = $1::int8 and s.queue = $2 and s.name = $3
    ),
    forgotten as (
      delete from "queue_steps" as s
      using first
      where s.job_id = $4::int8 and s.queue = $5
        and (
          s.started_at >= first.started_at or s.name = 'undo' or s.name like 'undo:%' or exists (
            select from "queue_steps" as u
            where u.job_id = s.job_id and u.queue = s.queue and u.name = 'undo:' || s.name
          )
        )
      returning s.name, s.signal, s.output
    ),
    kept as materialized (
      select s.signal, case when s.kind = 'first' then s.output -> 'value' else s.output end as value,
        row_number() over (partition by s.signal, case when s.kind = 'first' then s.output -> 'value' else s.output end) as nth
      from "queue_steps" as s
      where s.job_id = $6::int8 and s.queue = $7 and s.signal is not null
        and s.output is not null and s.name not in (select f.name from forgotten as f)
    ),
    sorted as (
      update "queue_mailboxes" as m
      set received = (select count(*) from kept as k where k.signal = m.name), sent = case
        when (m.name in (select k.signal from kept as k)) is true then (
          select jsonb_agg(e.entry order by (
            (m.name, e.entry -> 'value', e.nth) in (select k.signal, k.value, k.nth from kept as k)
          ) is not true, e.place)
          from (
            select entry, place,
              row_number() over (partition by entry -> 'value' order by place) as nth
            from jsonb_array_elements(m.sent) with ordinality as e(entry, place)
          ) as e
        )
        else m.sent end
      where m.job_id = $8::int8 and m.queue = $9
        and (m.name in (select f.signal from forgotten as f where f.output is not null)) is true
    )
    select name from forgotten
-- $1 = 42
-- $2 = "mail"
-- $3 = "mail"
-- $4 = 42
-- $5 = "mail"
-- $6 = 42
-- $7 = "mail"
-- $8 = 42
-- $9 = "mail"
