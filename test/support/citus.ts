import postgres from 'postgres';
import type { QueueTables } from '../../src/core/schema/create-queue-tables.ts';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { readPages } from '../docs/pages.ts';
import { until } from './until.ts';

/** A Citus cluster that tests may use, as `npm run test:citus` is told. */
export interface CitusCluster {
  /** A database on the coordinator, with a role that may create databases. */
  readonly url: string;
  /** A database on each further node. */
  readonly nodes: readonly string[];
}

/** What the environment says: `CITUS_URL`, and in `CITUS_NODES` the nodes' URLs, with commas between. */
export function citusCluster(env: NodeJS.ProcessEnv = process.env): CitusCluster | undefined {
  const { CITUS_URL: url, CITUS_NODES: nodes = '' } = env;
  if (!url) return undefined;
  return { url, nodes: nodes.split(',').filter((node) => node !== '') };
}

/** Makes a server that is not Citus look like it: by the name of an extension. Nothing on a cluster. */
export const AS_ON_CITUS = citusCluster()
  ? 'select'
  : `
  set local allow_system_table_mods = on;
  update pg_extension set extname = 'citus' where extname = 'plpgsql'`;

/** Lets a transaction of a test change tables of a cluster in any way: each shard after the other. Nothing elsewhere. */
export const ONE_SHARD_AFTER_THE_OTHER = citusCluster()
  ? "set local citus.multi_shard_modify_mode = 'sequential'"
  : 'select';

/** The tables with what a worker finds out at its start: whether they lie on Citus. */
export function onThisServer(tables: QueueTables): QueueTables {
  if (citusCluster() === undefined) return tables;
  return inContext(tables, { server: { distributed: true, identified: true } });
}

/** Which tables a custom migration distributes: those of the queue, of `schema/control`, or of `schema/metrics`. */
export type CitusTables = 'on Citus' | 'of control tables on Citus' | 'of the table of metrics on Citus';

/** The custom migration that docs/scaling.md gives, as its reader would copy it. */
export function citusMigration(of: CitusTables): string {
  const page = readPages().find(({ path }) => path === 'docs/scaling.md');
  const blocks = page?.blocks.filter(({ language, info }) => language === 'sql' && info === of) ?? [];
  const [block] = blocks;
  if (block === undefined || blocks.length > 1)
    throw new Error(`docs/scaling.md must have one block of SQL ${of}`);
  return block.code;
}

/** Where the migrations put each table. */
export function citusLayout(): {
  readonly distributed: readonly string[];
  readonly reference: readonly string[];
} {
  const all = ['on Citus', 'of control tables on Citus', 'of the table of metrics on Citus'] as const;
  const code = all.map(citusMigration).join('\n');
  const named = (pattern: RegExp) => [...code.matchAll(pattern)].map(([, name = '']) => name);
  return {
    distributed: named(/create_distributed_table\('(\w+)', 'queue'/g),
    reference: named(/create_reference_table\('(\w+)'\)/g),
  };
}

/**
 * Makes a bare database on the coordinator the head of a cluster: the database and the extension on every
 * node, the nodes added, the library's tables distributed.
 *
 * @param migrate creates the tables
 */
export async function distributeDatabase(
  { url, nodes }: CitusCluster,
  name: string,
  migrate: (url: string) => Promise<void>,
): Promise<void> {
  for (const node of nodes) {
    await using(node, (sql) => sql.unsafe(`create database ${name}`));
    await using(databaseOn(node, name), (sql) => sql.unsafe('create extension citus'));
  }
  const coordinator = new URL(url);
  await using(databaseOn(url, name), async (sql) => {
    await sql.unsafe('create extension citus');
    await sql`select citus_set_coordinator_host(${coordinator.hostname}, ${Number(coordinator.port || 5432)})`;
    for (const node of nodes) {
      const { hostname, port } = new URL(node);
      await until(async () => {
        try {
          return await sql`select citus_add_node(${hostname}, ${Number(port || 5432)})`;
        } catch (error) {
          // A busy node may break off a connection.
          if (!(error instanceof Error) || !error.message.includes('failure on connection')) throw error;
          return false;
        }
      });
    }
  });
  // Tests make a database refuse rows by triggers; the tables of the library have none.
  await using(databaseOn(url, name), (sql) =>
    sql.unsafe(`alter database ${name} set citus.enable_unsafe_triggers = on`),
  );
  await migrate(databaseOn(url, name));
  await using(databaseOn(url, name), (sql) => sql.begin((tx) => tx.unsafe(citusMigration('on Citus'))));
}

/** Drops the databases on the nodes. The test run drops the coordinator's. */
export async function dropOnNodes({ nodes }: CitusCluster, name: string): Promise<void> {
  for (const node of nodes) {
    await using(node, (sql) => sql.unsafe(`drop database if exists ${name} with (force)`));
  }
}

function databaseOn(url: string, name: string): string {
  const database = new URL(url);
  database.pathname = name;
  return database.href;
}

async function using(url: string, use: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await use(sql);
  } finally {
    await sql.end();
  }
}
