import { type SQL, sql } from 'drizzle-orm';
import { getTableConfig } from 'drizzle-orm/pg-core';
import { MissingMigrationError, UnsupportedPostgresError } from '../errors.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { quotedName } from '../sql/quoted-name.ts';
import { checkGrants } from './check-grants.ts';

/** In the form of `server_version_num`. */
export const OLDEST_SUPPORTED = 140_000;

/**
 * Checks that the server is new enough, that the queue's tables have the columns of this version of the
 * library, and that the role has a worker's rights.
 *
 * @throws UnsupportedPostgresError | MissingMigrationError | QueueError saying what to do
 */
export async function checkDatabase(db: Executor, tables: QueueTables): Promise<void> {
  const [server] = await queryRows(db, tables, serverVersionQuery);
  if (Number(server?.number) < OLDEST_SUPPORTED) throw new UnsupportedPostgresError(String(server?.version));
  for (const table of Object.values(tables)) {
    const name = quotedName(table);
    const rows = await queryRows(db, tables, columnsQuery(name));
    const present = new Set(rows.map((row) => row.name));
    if (present.size === 0) throw new MissingMigrationError(`The table ${name} does not exist`);
    const missing = getTableConfig(table).columns.filter((column) => !present.has(column.name));
    if (missing.length > 0) {
      const names = missing.map((column) => column.name).join(', ');
      throw new MissingMigrationError(`The table ${name} has no column ${names}`);
    }
  }
  await checkGrants(db, tables);
}

export const serverVersionQuery: SQL = sql`
    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version`;

/** The columns of a table that the search path finds; none when there is no such table. */
export function columnsQuery(table: string): SQL {
  return sql`
    select attname as name from pg_attribute
    where attrelid = to_regclass(${table}) and attnum > 0 and not attisdropped`;
}
