import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { citusCluster, citusMigration } from './citus.ts';
import { emptyTables } from './empty-tables.ts';
import type { Connection } from './test-database.ts';

/** The statements that create the tables of `drizzle-queue/schema/control`, as an app's own migration does. */
export async function controlStatements(): Promise<string[]> {
  return await statementsOf('drizzle-control');
}

/** Those that create the table of `drizzle-queue/schema/metrics`. */
export async function metricsStatements(): Promise<string[]> {
  return await statementsOf('drizzle-metrics');
}

/** Those that create the tables of `drizzle-queue/schema/workflows`. */
export async function workflowsStatements(): Promise<string[]> {
  return await statementsOf('drizzle-workflows');
}

async function statementsOf(
  folder: 'drizzle-control' | 'drizzle-metrics' | 'drizzle-workflows',
): Promise<string[]> {
  const migrations = fileURLToPath(new URL(`../../${folder}`, import.meta.url));
  const files = (await readdir(migrations)).filter((name) => name.endsWith('.sql')).sort();
  const texts = await Promise.all(files.map((file) => readFile(`${migrations}/${file}`, 'utf8')));
  return texts.flatMap((text) => text.split('--> statement-breakpoint'));
}

/** Creates them, on a Citus cluster as docs/scaling.md distributes them. */
export async function addControlTables({ client }: Pick<Connection, 'client'>): Promise<void> {
  const distribute = citusCluster() === undefined ? [] : [citusMigration('of control tables on Citus')];
  for (const statement of [...(await controlStatements()), ...distribute]) await client.unsafe(statement);
}

/** Creates the table of `drizzle-queue/schema/metrics`, on Citus as docs/scaling.md does. */
export async function addMetricsTable({ client }: Pick<Connection, 'client'>): Promise<void> {
  for (const statement of await metricsStatements()) await client.unsafe(statement);
  if (citusCluster() !== undefined) await client.unsafe(citusMigration('of the table of metrics on Citus'));
}

/** Creates the tables of `drizzle-queue/schema/workflows`. */
export async function addWorkflowTables({ client }: Pick<Connection, 'client'>): Promise<void> {
  for (const statement of await workflowsStatements()) await client.unsafe(statement);
}

/** Empties the tables of `drizzle-queue/schema/workflows`. */
export async function clearWorkflowTables({ client }: Pick<Connection, 'client'>): Promise<void> {
  await emptyTables(
    client,
    'queue_steps',
    'queue_mailboxes',
    'queue_batches',
    'queue_waits',
    'queue_tallies',
  );
}
