import { getTableColumns, getTableName } from 'drizzle-orm';
import { getTableConfig, type PgColumn, type PgTable } from 'drizzle-orm/pg-core';

/** A key never changes, and Drizzle rebuilds a table's whole configuration on each request. */
const keys = new WeakMap<PgTable, readonly PgColumn[]>();

/** The columns of a table's primary key, in the key's order. @throws TypeError when it declares none */
export function primaryKeyOf(what: string, table: PgTable): readonly PgColumn[] {
  let key = keys.get(table);
  if (key === undefined) {
    key = findPrimaryKey(table);
    if (key.length === 0) {
      throw new TypeError(
        `${what}: the table '${getTableName(table)}' declares no primary key, which tells its rows apart; ` +
          'add .primaryKey() to a column, or primaryKey({ columns: […] }) to the table',
      );
    }
    keys.set(table, key);
  }
  return key;
}

function findPrimaryKey(table: PgTable): readonly PgColumn[] {
  const [composite] = getTableConfig(table).primaryKeys;
  const columns = Object.values(getTableColumns(table));
  return composite?.columns ?? columns.filter((column) => column.primary);
}
