    with recursive sought as (
      select to_regclass($1)::oid as id
    ),
    part as (
      select id from sought
      union all
      select i.inhrelid from pg_inherits as i join part as p on i.inhparent = p.id
    )
    select s.id is not null as present, has_table_privilege(s.id, 'select') as readable,
      row_security_active(s.id) and not exists (
        select from pg_policy as p cross join unnest(p.polroles) as r
        where p.polrelid = s.id and p.polpermissive and (r = 0 or pg_has_role(r, 'usage'))
      ) as hidden,
      (
        select json_agg(row_to_json(c)) from (
          select attname as name, format_type(atttypid, atttypmod) as type, attnotnull as "notNull",
            atthasdef or attidentity <> '' as filled
          from pg_attribute where attrelid = s.id and attnum > 0 and not attisdropped order by attnum
        ) as c
      )::text as columns,
      (
        select json_agg(row_to_json(i)) from (
          select n.relname as name, x.indisunique as "isUnique", x.indisprimary as "isPrimary",
            x.indisvalid as "isValid", x.indpred is not null as "isPartial",
            array(
              select coalesce(quote_ident(a.attname), pg_get_indexdef(x.indexrelid, k, true))
              from generate_series(1, x.indnkeyatts) as k
              left join pg_attribute as a on a.attrelid = s.id and a.attnum = nullif(x.indkey[k - 1], 0)
              order by k
            ) as keys,
            array(
              select a.attname from pg_depend as d
              join pg_attribute as a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
              where d.classid = d.refclassid and d.objid = x.indexrelid
                and d.refobjid = s.id and d.refobjsubid > 0
              group by a.attname order by a.attname
            ) as uses
          from pg_index as x join pg_class as n on n.oid = x.indexrelid
          where x.indrelid = s.id order by n.relname
        ) as i
      )::text as indexes,
      (
        select json_agg(conname order by conname) from pg_constraint where conrelid = s.id and contype = 'c'
      )::text as checks,
      (
        select json_agg(a.attname) from pg_partitioned_table as p
        join pg_attribute as a on a.attrelid = p.partrelid and a.attnum = any(p.partattrs::int2[])
        where p.partrelid = s.id
      )::text as partition_keys,
      (
        select json_agg(coalesce(array_to_json(t.reloptions), '[]'))
        from part as p join pg_class as t on t.oid = p.id
        where t.relkind = 'r'
      )::text as storage,
      (
        select json_agg(n.nspname order by n.nspname)
        from pg_class as t join pg_namespace as n on n.oid = t.relnamespace
        where t.relname = $2 and t.relkind in ('r', 'p')
          and t.oid is distinct from s.id
      )::text as other_schemas
    from sought as s
-- $1 = "\"queue_jobs\""
-- $2 = "queue_jobs"
