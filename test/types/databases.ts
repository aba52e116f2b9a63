/**
 * The databases of many drivers, as types only. Where a driver's package is not installed, what drizzle-orm imports from it is
 * `any`, which is no part of what the library looks at.
 */
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import type { drizzle as bunSql } from 'drizzle-orm/bun-sql';
import type { MySqlRemoteDatabase } from 'drizzle-orm/mysql-proxy';
import type { MySql2Database } from 'drizzle-orm/mysql2';
import type { NeonHttpDatabase } from 'drizzle-orm/neon-http';
import type { NeonDatabase } from 'drizzle-orm/neon-serverless';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { PgRemoteDatabase } from 'drizzle-orm/pg-proxy';
import type { PgliteDatabase } from 'drizzle-orm/pglite';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type { SqliteRemoteDatabase } from 'drizzle-orm/sqlite-proxy';
import type { VercelPgDatabase } from 'drizzle-orm/vercel-postgres';

export declare const postgresJs: PostgresJsDatabase;
export declare const nodePostgres: NodePgDatabase;
export declare const pglite: PgliteDatabase;
export declare const neonServerless: NeonDatabase;
export declare const neonHttp: NeonHttpDatabase;
export declare const vercelPostgres: VercelPgDatabase;
export declare const pgProxy: PgRemoteDatabase;
export declare const bun: ReturnType<typeof bunSql>;

export declare const mysql2: MySql2Database;
export declare const mysqlProxy: MySqlRemoteDatabase;
export declare const sqliteProxy: SqliteRemoteDatabase;
export declare const betterSqlite3: BetterSQLite3Database;
