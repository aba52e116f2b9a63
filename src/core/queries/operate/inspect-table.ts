import { type SQL, sql } from 'drizzle-orm';
import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { quotedName } from '../../sql/quoted-name.ts';

/** A table as it is in the database. */
export interface TableState {
  readonly present: boolean;
  readonly readable: boolean;
  /** Whether row-level security hides every row from this role, since no policy is for it. */
  readonly isHidden: boolean;
  readonly columns: readonly ColumnState[];
  readonly indexes: readonly IndexState[];
  readonly checks: readonly string[];
  /** The columns that the table is partitioned by; none for a plain one. */
  readonly partitionKeys: readonly string[];
  /** The storage parameters, such as `fillfactor=50`, of the table or of each partition that holds rows. */
  readonly storage: readonly (readonly string[])[];
  /** Other Postgres schemas in which there is a table of this name. */
  readonly otherSchemas: readonly string[];
}

export interface ColumnState {
  readonly name: string;
  /** As `format_type` writes it. */
  readonly type: string;
  readonly notNull: boolean;
  /** Whether a default, an identity or a generated column fills it when an insert does not. */
  readonly filled: boolean;
}

export interface IndexState {
  readonly name: string;
  readonly isUnique: boolean;
  readonly isPrimary: boolean;
  /** False after a `CREATE INDEX CONCURRENTLY` that failed, and while a partition lacks its part. */
  readonly isValid: boolean;
  readonly isPartial: boolean;
  /** The columns or expressions that it orders by. */
  readonly keys: readonly string[];
  /** The columns that it contains or has in its predicate; none for the index of a constraint. */
  readonly uses: readonly string[];
}

/**
 * What the catalog says about one of the queue's tables; reads no row of it, and needs no rights to it.
 *
 * **Under concurrency.** It waits for a transaction that locks the table exclusively only where an index has
 * an expression, which `pg_get_indexdef` opens the table for.
 */
export async function inspectTable(db: Executor, tables: QueueTables, table: PgTable): Promise<TableState> {
  const [row = {}] = await queryRows(db, tables, inspectTableQuery(table));
  // As text, because drivers decode JSON and arrays differently.
  const parsed = (name: string) => JSON.parse(String(row[name] ?? '[]'));
  return {
    present: row.present === true,
    readable: row.readable === true,
    isHidden: row.hidden === true,
    columns: parsed('columns'),
    indexes: parsed('indexes'),
    checks: parsed('checks'),
    partitionKeys: parsed('partition_keys'),
    storage: parsed('storage'),
    otherSchemas: parsed('other_schemas'),
  };
}

export function inspectTableQuery(table: PgTable): SQL {
  return sql`
    with recursive sought as (
      select to_regclass(${quotedName(table)})::oid as id
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
        where t.relname = ${getTableConfig(table).name} and t.relkind in ('r', 'p')
          and t.oid is distinct from s.id
      )::text as other_schemas
    from sought as s`;
}
