    with numbered as materialized (
      select nextval(s.sequence) as id, m.members
      from (select pg_get_serial_sequence($1, 'id')::regclass as sequence) as s, (
        select members from unnest($2::text::int8[]) with ordinality as m(members, place)
        order by place
      ) as m
    )
    insert into "queue_batches" (id, flow_id, total, pending, ended_at) overriding system value
    select n.id, null::int8, n.members, n.members,
      case when n.members = 0 then statement_timestamp() end
    from numbered as n order by n.id
    returning id
-- $1 = "\"queue_batches\""
-- $2 = "{2,3}"
