    with plain as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = any($2::text::int8[]) and j.group_key is null
        and (j.worker_id is null or j.worker_id not in (select w.id from "queue_workers" as w))
        for no key update skip locked
    ),
    adopted as (
      update "queue_jobs" as j set group_key = $3
      where j.queue = $4 and j.id = any(array(select id from plain))
      returning j.run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select distinct $5::text, a.run_at, array[$6::text] from adopted as a
      where a.run_at < 'infinity'
    )
    select count(*)::float8 as adopted from adopted
-- $1 = "mail"
-- $2 = "{1,2}"
-- $3 = "-"
-- $4 = "mail"
-- $5 = "mail"
-- $6 = "-"
