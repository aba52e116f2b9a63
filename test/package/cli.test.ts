import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import type {} from './global-setup.ts';
import { endOf, run, start } from './support/run-program.ts';
import { DRIZZLE_MAJORS } from './support/versions.ts';

const { projects } = inject('packed');

/** A CommonJS app, which has another copy of the package than the command. */
const app = `
const { drizzle } = require('drizzle-orm/postgres-js');
const { createQueue, defineJob, handle, limitsIn } = require('drizzle-queue');
const { defineConfig } = require('drizzle-queue/config');
const control = require('drizzle-queue/schema/control');
const postgres = require('postgres');

const queue = createQueue({ limits: limitsIn(control, { exports: { groups: { concurrency: 1 } } }) });
const job = defineJob('export', { queue: 'exports' });
const handlers = [handle(job, () => console.log('exported'))];
module.exports = defineConfig({ db: drizzle({ client: postgres(process.env.DATABASE_URL) }), queue, handlers });
`;

describe.each(DRIZZLE_MAJORS)('with drizzle-orm %s, the command as it is packed', (major) => {
  const database = useTestDatabase();

  async function project(): Promise<string> {
    return await mkdtemp(join(projects[major], 'cli-'));
  }

  test('is run by npx, and looks at a database by the driver of the app', async () => {
    const cwd = await project();
    const env = { DATABASE_URL: database.url };
    expect(await run('npx', ['drizzle-queue', '--version'], { cwd })).toMatch(/^\d+\.\d+\.\d+\n$/);
    const { code, stdout, output } = await endOf('npx', ['drizzle-queue', 'doctor', '--json'], { cwd, env });
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(JSON.parse(stdout)).toMatchObject({ version: 1, ok: true });
  });

  test('serves the dashboard', async () => {
    const cwd = await project();
    const env = { DATABASE_URL: database.url };
    const serving = start('npx', ['drizzle-queue', 'dashboard', '--port', '0', '--json'], { cwd, env });
    await until(() => serving.stdout().includes('"url"'), { timeoutMs: 60_000 });
    const { url }: { url: string } = JSON.parse(serving.stdout());
    const welcome = await fetch(url, { redirect: 'manual' });
    expect(welcome.status).toBe(303);
    const cookie = String(welcome.headers.get('set-cookie')).split(';')[0] ?? '';
    const page = await fetch(new URL('./', url), { headers: { cookie } });
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('<h1>Overview</h1>');
    await serving.stop();
  });

  test('works the groups of a CommonJS app, whose copy of the package knows them', async () => {
    const cwd = await project();
    await addControlTables(database);
    await writeFile(join(cwd, 'package.json'), '{ "type": "commonjs" }');
    await writeFile(join(cwd, 'queue.config.js'), app);
    const env = { DATABASE_URL: database.url };
    const enqueue = ['drizzle-queue', 'enqueue', 'export', '--group', 'ada'];
    await run('npx', enqueue, { cwd, env });
    const said = await run('npx', ['drizzle-queue', 'work', '--drain'], { cwd, env });
    // A worker that does not know of the groups claims no job of one.
    expect(said).toContain('exported\n1 completed');
  });
});
