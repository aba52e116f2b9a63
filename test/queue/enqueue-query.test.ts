import { withReplicas } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, defineJob, InvalidPayloadError, UnknownKindError } from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { OTHERS_NOTIFY, wakeChannel } from '../../src/core/sql/wake-channel.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { begin, commit, twoBackends, untilBlocked } from '../queries/support/locks.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();
const empty = useTestDatabase({ template: false });
const queue = createQueue();
const greet = defineJob('greet', { payload: z.object({ name: z.string() }), queue: 'mail', maxAttempts: 3 });
const plain = defineJob('plain');

beforeEach(() => clearTables(database.client));

test('nothing is sent before it is awaited, and then once each time', async () => {
  const query = queue.enqueueQuery(database.db, greet, { name: 'Ada' });
  expect(query.toSQL().params).toContain('{"name":"Ada"}');
  expect((await queue.list(database.db)).jobs).toEqual([]);
  const [{ id, duplicate }] = await query;
  expect(duplicate).toBe(false);
  expect((await queue.list(database.db)).jobs).toMatchObject([
    { id, kind: 'greet', queue: 'mail', maxAttempts: 3 },
  ]);
});

test('stores what enqueue stores', async () => {
  const options = {
    priority: 1,
    metadata: { a: [1] },
    runAt: new Date('2024-02-29T12:34:56.789Z'),
    uniqueKey: 'k',
  };
  const { id } = await queue.enqueue(database.db, greet, { name: 'Ada' }, options);
  const expected = await queue.find(database.db, id);
  await clearTables(database.client);
  const [enqueued] = await queue.enqueueQuery(database.db, greet, { name: 'Ada' }, options);
  const found = await queue.find(database.db, enqueued.id ?? 0);
  expect({ ...found, id: 0, createdAt: 0 }).toEqual({ ...expected, id: 0, createdAt: 0 });
});

test('in a transaction it is part of that', async () => {
  const undone = database.db.transaction(async (tx) => {
    await queue.enqueueQuery(tx, plain);
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  expect((await queue.list(database.db)).jobs).toEqual([]);
});

test('a duplicate has the id of the job that stands', async () => {
  const { id } = await queue.enqueue(database.db, greet, { name: 'Ada' }, { uniqueKey: 'k' });
  const again = queue.enqueueQuery(database.db, greet, { name: 'Bo' }, { uniqueKey: 'k' });
  expect(await again).toEqual([{ id, duplicate: true }]);
});

test('a duplicate of a job that was not yet committed when it began has none', async () => {
  const [first, second] = await twoBackends(database);
  await begin(first);
  await queue.enqueue(first.db, greet, { name: 'Ada' }, { uniqueKey: 'k' });
  const waiting = queue
    .enqueueQuery(second.db, greet, { name: 'Bo' }, { uniqueKey: 'k' })
    .then((rows) => rows);
  await untilBlocked(database, second);
  await commit(first);
  expect(await waiting).toEqual([{ id: null, duplicate: true }]);
});

test('notifies as an enqueue does: of what is due, as often as the throttle allows', async () => {
  const heard: string[] = [];
  const { unlisten } = await database.client.listen(wakeChannel(tables), (payload) =>
    heard.push(payload.replace(OTHERS_NOTIFY, '')),
  );
  const own = createQueue();
  // Made within a moment; a busy machine may take long to send them.
  const startMs = performance.now();
  const queries = Array.from({ length: 20 }, (_, n) =>
    own.enqueueQuery(database.db, greet, { name: `${n}` }),
  );
  const elapsedMs = performance.now() - startMs;
  const notifying = queries.filter((query) => query.toSQL().sql.includes('pg_notify')).length;
  for (const query of queries) await query;
  await createQueue({ wakeUps: false }).enqueueQuery(database.db, plain);
  await createQueue().enqueueQuery(database.db, plain, undefined, { delayMs: 1_000 });
  await createQueue().enqueueQuery(database.db, plain, undefined, { runAt: new Date(Date.now() + 60_000) });
  await database.client.notify(wakeChannel(tables), 'last');
  await until(() => heard.includes('last'));
  expect(heard).toEqual([...new Array(notifying).fill('mail'), 'last']);
  expect(notifying).toBeGreaterThanOrEqual(5);
  expect(notifying).toBeLessThanOrEqual(Math.min(5 + Math.ceil(elapsedMs / 4), 20));
  await unlisten();
});

test('a database with replicas enqueues at its primary', async () => {
  const db = withReplicas(database.db, [drizzle({ client: empty.client })]);
  const [{ id }] = await queue.enqueueQuery(db, plain);
  expect(await queue.find(database.db, id ?? 0)).toMatchObject({ kind: 'plain' });
});

test('uses the tables of its queue', () => {
  const own = createQueue({ tables: createQueueTables({ prefix: 'mail_' }) });
  const { sql } = own.enqueueQuery(database.db, plain, undefined, { uniqueKey: 'k' }).toSQL();
  expect(sql).toContain('"mail_jobs"');
  expect(sql).not.toContain('queue_jobs');
});

describe('refuses at once', () => {
  test('an invalid payload', () => {
    // @ts-expect-error no text
    expect(() => queue.enqueueQuery(database.db, greet, { name: 5 })).toThrow(InvalidPayloadError);
  });

  test('an option out of range', () => {
    expect(() => queue.enqueueQuery(database.db, plain, undefined, { priority: 10 })).toThrow(RangeError);
  });

  test('what is no definition', () => {
    // @ts-expect-error a text
    expect(() => queue.enqueueQuery(database.db, 'greet')).toThrow(UnknownKindError);
  });

  test('a schema that answers later, valid or not', async () => {
    const slow = defineJob('slow', { payload: z.string().refine(async (text) => text !== 'bad') });
    for (const payload of ['good', 'bad']) {
      expect(() => queue.enqueueQuery(database.db, slow, payload)).toThrow(/slow.*asynchronous.*use enqueue/);
    }
  });
});
