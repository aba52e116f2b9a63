import { createQueue, defineJob } from 'drizzle-queue';
import { beforeEach, expect, test } from 'vitest';
import { wakeChannel } from '../../src/core/sql/wake-channel.ts';
import { addJob, addJobs, claim, clearTables } from '../queries/support/jobs.ts';
import { begin, commit, rollback, twoBackends } from '../queries/support/locks.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { intercepted } from './support/executors.ts';
import { endJob } from './support/lives.ts';

const database = useTestDatabase();
const queue = createQueue();
const tick = defineJob('tick', { queue: 'q' });

beforeEach(() => clearTables(database.client));

test.each([
  ['a due job', {}],
  ['a scheduled job', { delayMs: 60_000 }],
])('%s ends as cancelled, with the reason', async (_, options) => {
  const { id } = await queue.enqueue(database.db, tick, undefined, options);
  expect(await queue.cancel(database.db, id, 'the customer left')).toEqual({ cancelled: true });
  expect(await queue.find(database.db, id)).toMatchObject({
    state: 'cancelled',
    errors: [{ attempt: 0, name: 'Cancelled', message: 'the customer left', at: expect.any(String) }],
  });
});

test('a reason of any size and any characters is stored', async () => {
  const { id } = await queue.enqueue(database.db, tick);
  expect(await queue.cancel(database.db, id, `a\0b \ud83d ${'x'.repeat(1_000_000)}`)).toEqual({
    cancelled: true,
  });
  const record = await queue.find(database.db, id);
  expect(record?.errors[0]?.message).toMatch(/^a�b � x+…$/);
});

test('a running job is asked to end; of two who ask, the first gives the reason', async () => {
  const id = await addJob(database.client, { workerId: 1 });
  const requested = { cancelled: 'requested' };
  expect(await queue.cancel(database.db, id, 'the customer left')).toEqual(requested);
  expect(await queue.cancel(database.db, id, 'twice')).toEqual(requested);
  expect(await queue.find(database.db, id)).toMatchObject({
    state: 'running',
    cancelReason: 'the customer left',
  });
});

test('a running job is ended by force, whoever holds it', async () => {
  const id = await addJob(database.client, { workerId: 1, attempt: 3, fence: 7 });
  expect(await queue.cancel(database.db, id, { force: true, reason: 'at once' })).toEqual({
    cancelled: true,
  });
  expect(await queue.find(database.db, id)).toMatchObject({
    state: 'cancelled',
    workerId: 1,
    claimedAt: expect.any(Date),
    attempt: 3,
    errors: [{ attempt: 3, name: 'Cancelled', message: 'at once' }],
  });
});

test('by force a job that waits ends as without', async () => {
  const { id } = await queue.enqueue(database.db, tick, undefined, { delayMs: 60_000 });
  expect(await queue.cancel(database.db, id, { force: true })).toEqual({ cancelled: true });
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'cancelled', workerId: null });
});

test.each([{}, { force: true }])(
  'notifies workers of a running job alone, at the commit: %o',
  async (options) => {
    const channel = wakeChannel(queue.tables);
    const heard: string[] = [];
    const { unlisten } = await database.client.listen(channel, (payload) => heard.push(payload));
    const tell = (mark: string) => database.client`select pg_notify(${channel}, ${mark})`;
    const [waiting, running] = await addJobs(database.client, [{}, { workerId: 1 }]);
    if (!('force' in options)) await queue.cancel(database.db, waiting, options);
    const [one] = await twoBackends(database);
    await begin(one);
    await queue.cancel(one.db, running, options);
    await tell('before the commit');
    await commit(one);
    await tell('end');
    await until(() => heard.includes('end'));
    expect(heard).toEqual(['before the commit', '', 'end']);
    const silent = createQueue({ wakeUps: false });
    const another = await addJob(database.client, { workerId: 1 });
    await silent.cancel(database.db, another, options);
    await tell('end of the second part');
    await until(() => heard.includes('end of the second part'));
    expect(heard).toHaveLength(4);
    await unlisten();
  },
);

test('a finished job, and one that was cancelled before', async () => {
  const { id } = await queue.enqueue(database.db, tick);
  await endJob(database.db, { kind: 'tick' });
  expect(await queue.cancel(database.db, id)).toEqual({ cancelled: false, reason: 'finished' });
  const second = await queue.enqueue(database.db, tick);
  await queue.cancel(database.db, second.id, 'first');
  expect(await queue.cancel(database.db, second.id, 'second')).toEqual({
    cancelled: false,
    reason: 'finished',
  });
  expect(await queue.find(database.db, second.id)).toMatchObject({ errors: [{ message: 'first' }] });
});

test('a job that never was', async () => {
  expect(await queue.cancel(database.db, 999_999)).toEqual({ cancelled: false, reason: 'not-found' });
});

test('a job that is held by a lock only, as runNext holds it', async () => {
  const { id } = await queue.enqueue(database.db, tick);
  const [one] = await twoBackends(database);
  await begin(one);
  await claim(one.db, { kinds: ['tick'], workerId: null });
  for (const force of [false, true])
    expect(await queue.cancel(database.db, id, { force })).toEqual({ cancelled: false, reason: 'locked' });
  await commit(one);
});

test('a job whose row is locked for a moment only, as by a claim', async () => {
  const { id } = await queue.enqueue(database.db, tick);
  const [one] = await twoBackends(database);
  await begin(one);
  await claim(one.db, { kinds: ['tick'] });
  let statements = 0;
  const db = intercepted(database.db, async () => {
    if (++statements === 4) await commit(one);
  });
  expect(await queue.cancel(db, id, 'late')).toEqual({ cancelled: 'requested' });
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'running', cancelReason: 'late' });
});

test.each([
  ['was claimed', undefined, () => claim(database.db, { kinds: ['tick'] })],
  ['has finished', 'finished', () => endJob(database.db, { kind: 'tick' })],
  [
    'has finished without a kept result',
    'finished',
    () => endJob(database.db, { kind: 'tick', keepResult: false }),
  ],
])('a job that %s between the look and the cancel', async (_, reason, act) => {
  const { id } = await queue.enqueue(database.db, tick);
  const db = intercepted(database.db, async (_, sent) => {
    if (sent.length === 1) await act();
  });
  expect(await queue.cancel(db, id)).toEqual(
    reason === undefined ? { cancelled: 'requested' } : { cancelled: false, reason },
  );
});

test('in a transaction that rolls back nothing is cancelled', async () => {
  const { id } = await queue.enqueue(database.db, tick);
  const [one] = await twoBackends(database);
  await begin(one);
  expect(await queue.cancel(one.db, id)).toEqual({ cancelled: true });
  await rollback(one);
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'due' });
});
