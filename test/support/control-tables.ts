import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { citusCluster, citusMigration } from './citus.ts';
import type { Connection } from './test-database.ts';

const migrations = fileURLToPath(new URL('../../drizzle-control', import.meta.url));

/** The statements that create the tables of `drizzle-queue/schema/control`, as an app's own migration does. */
export async function controlStatements(): Promise<string[]> {
  const files = (await readdir(migrations)).filter((name) => name.endsWith('.sql')).sort();
  const texts = await Promise.all(files.map((file) => readFile(`${migrations}/${file}`, 'utf8')));
  return texts.flatMap((text) => text.split('--> statement-breakpoint'));
}

/** Creates them, on a Citus cluster as docs/scaling.md distributes them. */
export async function addControlTables({ client }: Pick<Connection, 'client'>): Promise<void> {
  const distribute = citusCluster() === undefined ? [] : [citusMigration('of control tables on Citus')];
  for (const statement of [...(await controlStatements()), ...distribute]) await client.unsafe(statement);
}
