import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';

/** The server and the current session. */
export interface ServerState {
  /** Such as 180004. */
  readonly versionNumber: number;
  readonly version: string;
  /** A standby, or a read-only session. */
  readonly readOnly: boolean;
  readonly autovacuum: boolean;
  /** Whether Drizzle has run migrations in this database: its table of them exists under its default name. */
  readonly hasMigrations: boolean;
}

export async function inspectServer(db: Executor, tables: QueueTables): Promise<ServerState> {
  const [row = {}] = await queryRows(db, tables, inspectServerQuery);
  return {
    versionNumber: Number(row.number),
    version: String(row.version),
    readOnly: row.read_only === 'on',
    autovacuum: row.autovacuum === 'on',
    hasMigrations: row.has_migrations === true,
  };
}

export const inspectServerQuery: SQL = sql`
    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version,
      current_setting('transaction_read_only') as read_only, current_setting('autovacuum') as autovacuum,
      exists (select from pg_class where relname = '__drizzle_migrations') as has_migrations`;
