    with recursive part as (
      (select to_regclass($1)::oid as id union all select to_regclass($2)::oid as id union all select to_regclass($3)::oid as id union all select to_regclass($4)::oid as id)
      union all
      select i.inhrelid from pg_inherits as i join part as p on i.inhparent = p.id
    )
    select case when exists (select from pg_extension where extname = 'citus') then null
      else (select sum(pg_total_relation_size(p.id)) from part as p) end::float8 as bytes
-- $1 = "\"queue_jobs\""
-- $2 = "\"queue_results\""
-- $3 = "\"queue_workers\""
-- $4 = "\"queue_metrics\""
