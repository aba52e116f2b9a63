    with now as materialized (select statement_timestamp() as at),
    free as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = $2 and j.worker_id is null
        and (j.run_at < 'infinity' or (j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = 'ClaimRefusedError'))
      for no key update skip locked
    ),
    moved as (
    update "queue_jobs" as j set run_at = least(j.run_at, now.at)
    from now
    where j.queue = $3 and j.id = any(array(select id from free))
    returning j.id, j.queue, j.group_key, j.run_at
    ),
    unblocked as (
      delete from "queue_holds" as h using moved as u
      where h.queue = $4::text
        and h.group_key = u.group_key and h.job_id = u.id and h.until < 'infinity'
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from moved as g
        where g.group_key is not null and g.run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select id from moved
-- $1 = "mail"
-- $2 = 42
-- $3 = "mail"
-- $4 = "mail"
