import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Connection } from './test-database.ts';

const migrations = fileURLToPath(new URL('../../drizzle-control', import.meta.url));

/** The statements that create the tables of `drizzle-queue/schema/control`, as an app's own migration does. */
export async function controlStatements(): Promise<string[]> {
  const files = (await readdir(migrations)).filter((name) => name.endsWith('.sql')).sort();
  const texts = await Promise.all(files.map((file) => readFile(`${migrations}/${file}`, 'utf8')));
  return texts.flatMap((text) => text.split('--> statement-breakpoint'));
}

/** Creates them. */
export async function addControlTables({ client }: Pick<Connection, 'client'>): Promise<void> {
  for (const statement of await controlStatements()) await client.unsafe(statement);
}
