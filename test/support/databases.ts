import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { controlStatements, workflowsStatements } from './control-tables.ts';

/** A database on a server. */
export interface Database {
  readonly name: string;
  readonly url: string;
  /** Deletes it, disconnecting whoever still uses it. Can be called again. */
  drop(): Promise<void>;
}

/** How to create a database. */
export interface CreateDatabaseOptions {
  /** A unique one unless given. */
  readonly name?: string;
  /** The database to copy; an empty one unless given. */
  readonly template?: string;
}

/** The code of "source database is being accessed by other users". */
const OBJECT_IN_USE = '55006';

/** How long to wait for other users of a template, such as an autovacuum, to leave it. */
const TEMPLATE_PATIENCE_MS = 30_000;

/** A name for a database, or a prefix of several, that nobody else uses. */
export function uniqueDatabaseName(): string {
  return `drizzle_queue_test_${randomBytes(6).toString('hex')}`;
}

/** Creates a database on the server of `serverUrl`. */
export async function createDatabase(
  serverUrl: string,
  { name = uniqueDatabaseName(), template = 'template0' }: CreateDatabaseOptions = {},
): Promise<Database> {
  await withConnection(serverUrl, async (sql) => {
    const deadline = Date.now() + TEMPLATE_PATIENCE_MS;
    for (;;) {
      try {
        await sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(template)}`;
        return;
      } catch (error) {
        const inUse = error instanceof postgres.PostgresError && error.code === OBJECT_IN_USE;
        if (!inUse || Date.now() > deadline) throw error;
        await delay(100);
      }
    }
  });
  const url = new URL(serverUrl);
  url.pathname = name;
  return { name, url: url.href, drop: () => withConnection(serverUrl, (sql) => drop(sql, name)) };
}

/** Drops all databases whose names start with `prefix`. */
export async function dropDatabases(serverUrl: string, prefix: string): Promise<void> {
  await withConnection(serverUrl, async (sql) => {
    const names = await sql<
      { datname: string }[]
    >`SELECT datname FROM pg_database WHERE starts_with(datname, ${prefix})`;
    for (const { datname } of names) await drop(sql, datname);
  });
}

function drop(sql: postgres.Sql, name: string): Promise<unknown> {
  return sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`;
}

/** Refuses connections to a database from now on, so that none hinders it from being copied. */
export async function closeDatabase(serverUrl: string, name: string): Promise<void> {
  await withConnection(serverUrl, (sql) => sql`ALTER DATABASE ${sql(name)} ALLOW_CONNECTIONS false`);
}

/** Applies the repository's migrations, which create the library's tables. */
export async function migrateDatabase(url: string): Promise<void> {
  // Loaded by Node.js itself: in a test run with drizzle-orm 1.0, which cannot read migrations of drizzle-kit 0.31, an
  // import would be redirected to it.
  const require = createRequire(import.meta.url);
  const { drizzle }: typeof import('drizzle-orm/postgres-js') = require('drizzle-orm/postgres-js');
  const {
    migrate,
  }: typeof import('drizzle-orm/postgres-js/migrator') = require('drizzle-orm/postgres-js/migrator');
  await withConnection(url, async (client) => {
    await migrate(drizzle({ client }), {
      migrationsFolder: fileURLToPath(new URL('../../drizzle', import.meta.url)),
    });
  });
}

/** Creates the tables of limits and schedules beside them. */
export async function migrateControl(url: string): Promise<void> {
  await withConnection(url, async (client) => {
    for (const statement of await controlStatements()) await client.unsafe(statement);
  });
}

/** Creates the tables of `drizzle-queue/schema/workflows`. */
export async function migrateWorkflows(url: string): Promise<void> {
  await withConnection(url, async (client) => {
    for (const statement of await workflowsStatements()) await client.unsafe(statement);
  });
}

async function withConnection(url: string, use: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await use(sql);
  } finally {
    await sql.end();
  }
}
