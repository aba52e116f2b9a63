import { randomBytes } from 'node:crypto';
import { createQueue, defineJob, drain, fixedBackoff, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { useCli } from './support/build-cli.ts';
import { runCli } from './support/run-cli.ts';

// The command has no queue.config.ts here, so it does not know which queues have groups.
const database = useTestDatabase();
const cli = useCli();
const ordered = createQueue({
  limits: limitsIn(control, {
    success: { groups: { serial: 'success' } },
    end: { groups: { serial: 'end' } },
  }),
});
const options = { payload: unvalidated<null>(), group: () => 'a', backoff: fixedBackoff(3_600_000) };
const inSuccess = defineJob('in success', { ...options, queue: 'success' });
const inEnd = defineJob('in end', { ...options, queue: 'end' });
const plain = defineJob('plain');
let cwd: string;

const run = async (args: readonly string[], url = database.url) =>
  await runCli(cli.bin, args, { cwd, env: { DATABASE_URL: url } });
const handled = (isWell: boolean) => ({
  deadlineMs: 20_000,
  queue: ordered,
  handlers: [inSuccess, inEnd].map((job) =>
    handle(job, () => {
      if (!isWell) throw new Error('no');
    }),
  ),
});
const stateOf = async (id: number) => (await ordered.find(database.db, id))?.state;
const noted = async () =>
  (await database.client`select queue, group_keys from queue_notes`).map(({ queue, group_keys }) => ({
    queue,
    group_keys,
  }));

beforeAll(async () => {
  await addControlTables(database);
  cwd = await cli.project();
});
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(database.client, 'queue_groups', 'queue_holds', 'queue_notes');
});

test.each([
  ['by its id', (id: number) => [String(id)]],
  ['by its kind', () => ['--kind', 'in success', '--yes']],
  ['by the words of the dashboard', (id: number) => ['--filter', `#${id}`, '--yes']],
])('redrive %s lets a group go on that the job has stopped', async (_, which) => {
  const { id } = await ordered.enqueue(database.db, inSuccess, null, { maxAttempts: 1 });
  await drain(database.db, handled(false));
  const { id: behind } = await ordered.enqueue(database.db, inSuccess, null);
  expect(await stateOf(id)).toBe('discarded');
  await emptyTables(database.client, 'queue_notes');
  expect(await run(['redrive', ...which(id)])).toMatchObject({ code: 0 });
  expect(await noted()).toEqual([{ queue: 'success', group_keys: ['a'] }]);
  await drain(database.db, handled(true));
  expect([await stateOf(id), await stateOf(behind)]).toEqual(['completed', 'completed']);
});

test('run-now ends the wait of a group for the next attempt of its first job', async () => {
  const { id } = await ordered.enqueue(database.db, inEnd, null);
  await drain(database.db, handled(false));
  const { id: behind } = await ordered.enqueue(database.db, inEnd, null);
  await emptyTables(database.client, 'queue_notes');
  expect(await run(['run-now', String(id)])).toMatchObject({ code: 0, stdout: `${id} due\n` });
  expect(await noted()).toEqual([{ queue: 'end', group_keys: ['a'] }]);
  await drain(database.db, handled(true));
  expect([await stateOf(id), await stateOf(behind)]).toEqual(['completed', 'completed']);
});

test('cancel of the first job of a group lets the others go on', async () => {
  const { id } = await ordered.enqueue(database.db, inEnd, null);
  await drain(database.db, handled(false));
  const { id: behind } = await ordered.enqueue(database.db, inEnd, null);
  expect(await run(['cancel', String(id)])).toMatchObject({ code: 0, stdout: `${id} cancelled\n` });
  await drain(database.db, handled(true));
  expect([await stateOf(id), await stateOf(behind)]).toEqual(['cancelled', 'completed']);
});

test('jobs of queues without groups stay in none', async () => {
  const { id } = await ordered.enqueue(database.db, plain, undefined);
  const { id: other } = await ordered.enqueue(database.db, plain, undefined, { delayMs: 3_600_000 });
  await ordered.enqueue(database.db, inEnd, null);
  await emptyTables(database.client, 'queue_notes');
  await run(['cancel', String(id)]);
  expect(await run(['redrive', String(id)])).toMatchObject({ code: 0 });
  expect(await run(['run-now', String(other)])).toMatchObject({ code: 0 });
  for (const job of [id, other])
    expect(await ordered.find(database.db, job)).toMatchObject({ state: 'due', group: null });
  expect(await noted()).toEqual([]);
});

test('a role that has no rights to groups is refused where there are some, and else needs none', async () => {
  const role = `plain_${randomBytes(4).toString('hex')}`;
  const url = new URL(database.url);
  url.username = role;
  url.password = 'plain';
  await database.client.unsafe(`create role ${role} login password 'plain'`);
  onTestFinished(async () => {
    await database.client.unsafe(`drop owned by ${role}; drop role ${role}`);
  });
  await database.client.unsafe(`
    grant connect on database "${url.pathname.slice(1)}" to ${role};
    grant select, insert, update, delete on queue_jobs, queue_results to ${role};
    grant select on queue_workers, queue_pauses to ${role}`);
  const { id } = await ordered.enqueue(database.db, plain, undefined);
  expect(await run(['cancel', String(id)], url.href)).toMatchObject({ code: 0 });
  const { id: grouped } = await ordered.enqueue(database.db, inEnd, null);
  expect(await run(['cancel', String(grouped)], url.href)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('drizzle-queue sql grants'),
  });
  expect(await stateOf(grouped)).toBe('due');
});
