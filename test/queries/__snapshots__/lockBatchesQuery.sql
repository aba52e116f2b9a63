    with locked as materialized (
      select b.id from "queue_batches" as b where b.id = any($1::text::int8[])
      order by b.id for no key update skip locked
    )
    select (select count(*) from locked)::int4 as locked, count(*)::int4 as found
    from "queue_batches" as b where b.id = any($2::text::int8[])
-- $1 = "{42,43}"
-- $2 = "{42,43}"
