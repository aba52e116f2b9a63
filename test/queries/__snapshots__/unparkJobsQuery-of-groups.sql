    with now as materialized (select statement_timestamp() as at),
    live as materialized (
      select j.id from "queue_jobs" as j
      where j.queue = $1 and j.id = any(array(select unnest($2::text::int8[])))
      order by j.id for no key update
    ),
    unparked as (
    update "queue_jobs" as j
    set run_at = case when j.worker_id is null then case when j.blockers is null then j.run_at else least(j.run_at, now.at) end
      else greatest(now.at, j.claimed_at + interval '1 microsecond') end
    from now
    where j.queue = $3 and j.id = any(array(select id from live))
    returning j.id, j.queue, j.group_key, j.run_at
    ),
    noted as (
      insert into "queue_notes" (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / 20 as part
        from (
        select distinct g.queue, g.run_at as due_at, g.group_key from unparked as g
        where g.group_key is not null and g.run_at < 'infinity'
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part
    )
    select id from unparked
-- $1 = "mail"
-- $2 = "{42}"
-- $3 = "mail"
