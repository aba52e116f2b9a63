import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

export interface ServerState {
  /** Such as 180004. */
  readonly versionNumber: number;
  readonly version: string;
  /** What the server calls itself, such as `PostgreSQL 18.4 on x86_64-pc-linux-gnu, …`. */
  readonly product: string;
  /** Whether this connection may only read: on a standby, or by a setting. */
  readonly readOnly: boolean;
  /** Whether it follows a primary: a hot standby, or a reader of a cluster. */
  readonly standby: boolean;
  readonly autovacuum: boolean;
  /** Whether Drizzle has run migrations in this database: its table of them exists under its default name. */
  readonly hasMigrations: boolean;
}

export async function inspectServer(db: Executor, tables: QueueTables): Promise<ServerState> {
  const [row = {}] = await queryRows(db, tables, inspectServerQuery);
  return {
    versionNumber: Number(row.number),
    version: String(row.version),
    product: String(row.product),
    readOnly: row.read_only === 'on',
    standby: row.standby === 'on',
    autovacuum: row.autovacuum === 'on',
    hasMigrations: row.has_migrations === true,
  };
}

export const inspectServerQuery: SQL = sql`
    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version, version() as product,
      current_setting('in_hot_standby', true) as standby,
      current_setting('transaction_read_only') as read_only, current_setting('autovacuum') as autovacuum,
      exists (select from pg_class where relname = '__drizzle_migrations') as has_migrations`;
