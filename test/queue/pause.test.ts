import { createQueue, defineJob, handle, runNext } from 'drizzle-queue';
import { beforeEach, describe, expect, test } from 'vitest';
import { wakeChannel } from '../../src/core/sql/wake-channel.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from '../queries/support/locks.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { untouched } from './support/executors.ts';

const database = useTestDatabase();
const queue = createQueue();
const tick = defineJob('tick', { queue: 'q' });

beforeEach(() => clearTables(database.client));

const names = async () => (await queue.paused(database.db)).map(({ queue }) => queue);

describe('pause and resume', () => {
  test('say whether they have changed something, and paused which queues are paused, since when', async () => {
    expect(await queue.paused(database.db)).toEqual([]);
    expect(await queue.pause(database.db, 'q')).toBe(true);
    const [first] = await queue.paused(database.db);
    expect(await queue.pause(database.db, 'q')).toBe(false);
    // A second pause is not a new one.
    expect(await queue.paused(database.db)).toEqual([{ queue: 'q', pausedAt: first?.pausedAt }]);
    expect(first?.pausedAt).toBeInstanceOf(Date);
    await queue.pause(database.db, 'a queue that nobody has used');
    expect(await names()).toEqual(['a queue that nobody has used', 'q']);
    expect(await queue.resume(database.db, 'q')).toBe(true);
    expect(await queue.resume(database.db, 'q')).toBe(false);
    expect(await names()).toEqual(['a queue that nobody has used']);
  });

  test('a pause that is rolled back never was, and neither was a resume', async () => {
    const [one] = await twoBackends(database);
    await begin(one);
    await queue.pause(one.db, 'q');
    expect(await names()).toEqual([]);
    await rollback(one);
    expect(await names()).toEqual([]);
    await queue.pause(database.db, 'q');
    await begin(one);
    await queue.resume(one.db, 'q');
    expect(await names()).toEqual(['q']);
    await rollback(one);
    expect(await names()).toEqual(['q']);
  });

  test('of two that pause at the same time, one has paused', async () => {
    const [one, two] = await twoBackends(database);
    await begin(one);
    expect(await queue.pause(one.db, 'q')).toBe(true);
    const second = queue.pause(two.db, 'q');
    await untilBlocked(database, two);
    await commit(one);
    expect(await second).toBe(false);
  });

  test('notify the workers at the commit, and only of a change', async () => {
    const channel = wakeChannel(queue.tables);
    const heard: string[] = [];
    const { unlisten } = await database.client.listen(channel, (payload) => heard.push(payload));
    const tell = (mark: string) => database.client`select pg_notify(${channel}, ${mark})`;
    const [one] = await twoBackends(database);
    await begin(one);
    await queue.pause(one.db, 'q');
    await tell('paused');
    await commit(one);
    await queue.pause(database.db, 'q');
    await tell('again');
    await queue.resume(database.db, 'q');
    await tell('resumed');
    await queue.resume(database.db, 'q');
    await createQueue({ wakeUps: false }).pause(database.db, 'q');
    await tell('end');
    await until(() => heard.includes('end'));
    expect(heard).toEqual(['paused', '', 'again', '', 'resumed', 'end']);
    await unlisten();
  });

  test.each(['', 'a\0', '\ud83d', 'x'.repeat(201), 5, undefined])(
    'refuse what can be no queue, before anything is sent: %o',
    async (name) => {
      for (const method of ['pause', 'resume'] as const) {
        // What a caller without types may give.
        const attempt = queue[method](untouched(), name as string);
        await expect(attempt).rejects.toBeInstanceOf(TypeError);
        await expect(attempt).rejects.toThrow(`${method}: queue`);
      }
    },
  );
});

describe('of a paused queue', () => {
  test('runNext runs nothing, and looks in the others', async () => {
    const tock = defineJob('tock', { queue: 'r' });
    const next = () =>
      runNext(database.db, { queue, handlers: [handle(tick, () => {}), handle(tock, () => {})] });
    await queue.pause(database.db, 'q');
    const { id, duplicate } = await queue.enqueue(database.db, tick);
    expect(duplicate).toBe(false);
    expect(await next()).toBeUndefined();
    const other = await queue.enqueue(database.db, tock);
    expect((await next())?.job.id).toBe(other.id);
    expect(await next()).toBeUndefined();
    await queue.resume(database.db, 'q');
    expect((await next())?.job.id).toBe(id);
  });
});
