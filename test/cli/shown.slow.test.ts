import { createQueue, defineJob, defineSchedule, schedulesIn, unvalidated } from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { beforeAll, describe, expect, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { useCli } from './support/build-cli.ts';
import { runCli, startCli } from './support/run-cli.ts';

const database = useTestDatabase();
const cli = useCli();

const config = (show: string) => ({
  'queue.config.mjs': `
    import { text } from 'drizzle-orm/pg-core';
    import { drizzle } from 'drizzle-orm/node-postgres';
    import pg from 'pg';
    import { createQueue, schedulesIn } from 'drizzle-queue';
    import { defineConfig } from 'drizzle-queue/config';
    import { createQueueTables } from 'drizzle-queue/schema';
    import { queueSchedules } from 'drizzle-queue/schema/control';
    const tables = createQueueTables({ columns: { tenant: text('tenant') } });
    export default defineConfig({
      db: drizzle(new pg.Pool({ connectionString: process.env.SHOP_URL })),
      queue: createQueue({ tables, schedules: schedulesIn(queueSchedules) }),
      dashboard: { show: ${show} },
    });`,
});
const env = () => ({ SHOP_URL: database.url });

/** Every one contains the word that nobody may read. */
const ERRORS = JSON.stringify([
  { attempt: 1, name: 'secret-name', message: 'secret-message', stack: 'secret-stack', at: '2026-01-01' },
]);
const LIVE = 7_001;
const ENDED = 7_002;
let hides: string;
let changes: string;
let shows: string;

async function end(id: number): Promise<void> {
  await database.client`
    insert into queue_results (job_id, queue, kind, payload, state, output, errors, attempt, max_attempts, priority,
      fence, metadata, unique_key, group_key, tenant, created_at, run_at, finished_at)
    values (${id}, 'q', 'k', '{"a": "secret-payload"}', 'discarded', '"secret-output"', ${ERRORS}::text::jsonb, 1, 1, 5,
      1, '{"m": "secret-metadata"}', 'secret-key', 'secret-group', 'secret-tenant', now(), now(), statement_timestamp())`;
}

beforeAll(async () => {
  await addControlTables(database);
  await database.client`alter table queue_jobs add tenant text`;
  await database.client`alter table queue_results add tenant text`;
  await database.client`
    insert into queue_jobs (id, queue, kind, payload, run_at, max_attempts, attempt, errors, progress, metadata,
      unique_key, group_key, tenant, worker_id, claimed_at, cancel_reason)
    overriding system value
    values (${LIVE}, 'q', 'k', '{"a": "secret-payload"}', now(), 3, 1, ${ERRORS}::text::jsonb, '"secret-progress"',
      '{"m": "secret-metadata"}', 'secret-key', 'secret-group', 'secret-tenant', 1, now(), 'secret-reason')`;
  await end(ENDED);
  await database.client`
    insert into queue_workers (name, queues, session, seen_at)
    values ('secret-worker', '["q"]', 1, now() - interval '1 hour')`;
  await createQueue({ schedules: schedulesIn(queueSchedules) }).schedules.set(
    database.db,
    defineSchedule('secret-schedule', {
      job: defineJob('k', { payload: unvalidated<unknown>() }),
      payload: { a: 'secret-payload' },
      every: 60_000,
    }),
  );
  hides = await cli.project(config('() => null'));
  changes = await cli.project(config("({ text }) => text.replaceAll('secret', 'open')"));
  shows = await cli.project(config('({ text }) => text'));
});

const commands = (): string[][] => [
  ['list'],
  ['show', String(LIVE)],
  ['show', String(ENDED)],
  ['doctor'],
  ['status'],
  ['schedules'],
];

describe('what dashboard.show of queue.config.ts says', () => {
  test.each([0, 1, 2, 3, 4, 5])('holds for every command, in words and as JSON: %#', async (index) => {
    const args = commands()[index] ?? [];
    for (const json of [[], ['--json']]) {
      const seen = await runCli(cli.bin, [...args, ...json], { cwd: shows, env: env() });
      expect(seen.stdout, 'the word is there').toContain('secret');
      const hidden = await runCli(cli.bin, [...args, ...json], { cwd: hides, env: env() });
      expect(hidden.stdout + hidden.stderr).not.toMatch(/secret/);
      expect(hidden.stdout).toContain('hidden');
      expect(hidden.code).toBe(seen.code);
      const changed = await runCli(cli.bin, [...args, ...json], { cwd: changes, env: env() });
      expect(changed.stdout + changed.stderr).not.toMatch(/secret/);
      expect(changed.stdout).toContain('open');
    }
  });

  test('is told of what a program gets: null and its name, or the JSON that show has made', async () => {
    const answer = async (cwd: string) => {
      const { stdout } = await runCli(cli.bin, ['show', String(ENDED), '--json'], { cwd, env: env() });
      return JSON.parse(stdout).job;
    };
    expect(await answer(hides)).toMatchObject({
      id: ENDED,
      payload: null,
      tenant: null,
      errors: [{ attempt: 1, name: null, message: null, stack: null }],
      hidden: [
        'payload',
        'metadata',
        'uniqueKey',
        'group',
        'tenant',
        'errors.name',
        'errors.message',
        'errors.stack',
      ],
    });
    expect(await answer(changes)).toMatchObject({
      payload: { a: 'open-payload' },
      uniqueKey: 'open-key',
      errors: [{ name: 'open-name' }],
    });
    expect(await answer(shows)).not.toHaveProperty('hidden');
  });

  test('knows the job that a value belongs to', async () => {
    const cwd = await cli.project(
      config(
        "({ job, field, text }) => (job?.own.tenant === 'secret-tenant' && field === 'payload' ? null : text)",
      ),
    );
    const { stdout } = await runCli(cli.bin, ['list'], { cwd, env: env() });
    expect(stdout).toContain('hidden');
    expect(stdout).not.toContain('secret-payload');
  });

  test('holds for what tail prints', async () => {
    const tails = [[], ['--json']].map((json) =>
      startCli(cli.bin, ['tail', '--every', '50ms', ...json], { cwd: changes, env: env() }),
    );
    await until(async () => {
      const looking = await database.client`
        select from pg_stat_activity
        where datname = ${database.name} and pid <> pg_backend_pid() and query like '%finished_at%'`;
      return looking.length >= 2;
    });
    await end(7_003);
    for (const tail of tails) await tail.says('open-message');
    for (const tail of tails) {
      tail.child.kill('SIGINT');
      const { stdout, stderr } = await tail.end();
      expect(stdout + stderr).not.toMatch(/secret/);
    }
    await database.client`delete from queue_results where job_id = 7003`;
  });
});
