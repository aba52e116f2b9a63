import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { PGlite } from '@electric-sql/pglite';
import { inject } from 'vitest';
// For the type of what `inject` returns.
import type {} from './global-setup.ts';
import { pgliteCopy } from './pglite-copy.ts';

/**
 * PGlite with the library's tables. The first of a run creates them and leaves a copy, which the others begin with:
 * creating a database takes PGlite four times as long as loading one.
 */
export async function openPglite(): Promise<PGlite> {
  const path = pgliteCopy(inject('testServer').prefix);
  if (existsSync(path)) return PGlite.create({ loadDataDir: new Blob([await readFile(path)]) });
  const client = await PGlite.create();
  await migrate(client);
  const copy = Buffer.from(await (await client.dumpDataDir('none')).arrayBuffer());
  // Several may be the first.
  const own = `${path}.${randomUUID()}`;
  await writeFile(own, copy);
  await rename(own, path);
  return client;
}

async function migrate(client: PGlite): Promise<void> {
  const folder = new URL('../../drizzle/', import.meta.url);
  const migrations = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  for (const name of migrations) await client.exec(await readFile(new URL(name, folder), 'utf8'));
}
