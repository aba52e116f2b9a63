import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { finishedJobs } from './support/finished-jobs.ts';
import { useGuideApp } from './support/guide-app.ts';

const database = useTestDatabase({ template: false });
const app = useGuideApp({
  from: ['trpc'],
  guide: 'trpc-monorepo',
  // The driver takes an address for a pool's when its host is localhost.
  env: () => {
    const url = database.url.replace('127.0.0.1', 'localhost');
    return { POSTGRES_URL: url, POSTGRES_URL_NON_POOLING: url };
  },
  shellEnv: () => ({
    NODE_OPTIONS: `--import=${fileURLToPath(new URL('support/neon-here.mjs', import.meta.url))}`,
  }),
});

const START = 'npm run start -w @acme/worker';

test('its first job is done by the commands of its guide', async () => {
  await app().follow('The first job');
  expect(await finishedJobs(database, 1)).toEqual([{ kind: 'send-receipt', state: 'completed' }]);
  app().report('the first job was done');
  await until(() => app().running(START).output().includes('A receipt for ada@example.com'));
  await app().shell('npx tsc');
});

test('its command line lists that job', async () => {
  const said = await app().follow('The command line');
  expect(said.join('')).toMatch(/completed.*send-receipt|send-receipt.*completed/);
  await app().shell('npx tsc');
});

// What the guide warns of, and why it takes a pool.
const PROGRAM = `
import { createPool, sql } from '@vercel/postgres';
import { sql as query } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/vercel-postgres';

/** Whether a transaction keeps its connection when another takes the one that was free. */
async function keepsConnection(client) {
  const db = drizzle({ client });
  const pid = async (tx) => (await tx.execute(query\`select pg_backend_pid() as pid\`)).rows[0].pid;
  return await db.transaction(async (tx) => {
    const before = await pid(tx);
    const other = await client.connect();
    const after = await pid(tx);
    other.release();
    return before === after;
  });
}

console.log(JSON.stringify({ sql: await keepsConnection(sql), pool: await keepsConnection(createPool()) }));
process.exit(0);
`;

test('a transaction has a connection to itself with a pool, and not with sql', async () => {
  await writeFile(join(app().directory, 'packages/db/connections.mjs'), PROGRAM);
  const said = await app().shell('node --env-file=.env packages/db/connections.mjs');
  expect(JSON.parse(said)).toEqual({ sql: false, pool: true });
});
