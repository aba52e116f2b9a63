import { text } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, handle, limitsIn, NonRetryableError, unvalidated } from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { drainIn, inTransaction, matchersOf, queueMatchers, travel } from 'drizzle-queue/testing';
import { describe, expect, test } from 'vitest';
import { tableStatements } from '../../src/entries/testing/table-statements.ts';
import { type UsedTestDatabase, useTestDatabase } from '../support/test-database.ts';
import { DATABASES, useDatabaseOn } from './open-databases.ts';

expect.extend(queueMatchers);

const queue = createQueue({ limits: limitsIn(control, { mail: { groups: {} } }) });
const send = defineJob('send', {
  payload: unvalidated<{ orderId: number; to?: { name: string } }>(),
  output: unvalidated<string>(),
  queue: 'mail',
});
const other = defineJob('other');

/** Why an assertion failed. */
async function failure(assertion: Promise<void>): Promise<string> {
  return await assertion.then(
    () => 'it did not fail',
    (error: Error) => error.message,
  );
}

describe.each(DATABASES)('on %s', (name) => {
  const database = useDatabaseOn(name);
  type Tx = Parameters<Parameters<UsedTestDatabase['db']['transaction']>[0]>[0];
  const inTx = (run: (tx: Tx) => Promise<void>) => () => inTransaction(database.db, run);

  test(
    'a job that was discarded is shown with its stored error, and where that often comes from',
    inTx(async (tx) => {
      await queue.enqueue(tx, send, { orderId: 1 });
      // It asks on another connection, which sees nothing of what the test has written.
      const lost = handle(send, () => Promise.reject(new NonRetryableError('There is no order 1')));
      await drainIn(tx, { queue, handlers: [lost], failFast: false });
      const message = await failure(expect(tx).toHaveCompleted(send));
      expect(message).toContain(`(discarded)
    state: "discarded", expected "completed"
    its last error, at attempt 1: NonRetryableError: There is no order 1
    (a handler sees what a test has written in its transaction only through ctx.db)`);
    }),
  );

  test(
    'toHaveEnqueued compares what is given',
    inTx(async (tx) => {
      await expect(tx).not.toHaveEnqueued(send);
      await queue.enqueue(
        tx,
        send,
        { orderId: 1, to: { name: 'Ada' } },
        { uniqueKey: 'k', priority: 2, group: 'g', metadata: { trace: 't' }, delayMs: 3_600_000 },
      );
      await expect(tx).toHaveEnqueued(send);
      await expect(tx).toHaveEnqueued(send, {
        payload: { orderId: 1, to: { name: 'Ada' } },
        queue: 'mail',
        priority: 2,
        uniqueKey: 'k',
        group: 'g',
        metadata: { trace: 't' },
        attempt: 0,
        runIn: { hours: 1 },
        times: 1,
      });
      await expect(tx).toHaveEnqueued(send, { payload: expect.objectContaining({ orderId: 1 }) });
      await expect(tx).not.toHaveEnqueued(send, { payload: { orderId: 1 } });
      await expect(tx).not.toHaveEnqueued(send, { priority: 3 });
      await expect(tx).not.toHaveEnqueued(send, { runIn: { minutes: 59, deltaMs: 1_000 } });
      await expect(tx).not.toHaveEnqueued(send, { times: 2 });
      await expect(tx).toHaveEnqueued(other, { times: 0 });
      // As long after its enqueue as before.
      await travel(tx, queue, { hours: 3 });
      await expect(tx).toHaveEnqueued(send, { runIn: { hours: 1 } });
    }),
  );

  test(
    'toHaveCompleted and toHaveDiscarded tell how jobs have ended',
    inTx(async (tx) => {
      await queue.enqueue(tx, send, { orderId: 1 });
      await queue.enqueue(tx, send, { orderId: 2 });
      await expect(tx).not.toHaveCompleted(send);
      const sending = handle(send, ({ payload }) => {
        if (payload.orderId === 2) throw new NonRetryableError('mailbox full: 451');
        return 'm1';
      });
      await drainIn(tx, { queue, handlers: [sending], failFast: false });
      await expect(tx).toHaveCompleted(send, { payload: { orderId: 1 }, output: 'm1', times: 1 });
      await expect(tx).not.toHaveCompleted(send, { payload: { orderId: 2 } });
      await expect(tx).toHaveDiscarded(send, { error: /^NonRetryableError: .*451$/, attempt: 1 });
      await expect(tx).toHaveDiscarded(send, { error: 'mailbox full' });
      await expect(tx).not.toHaveDiscarded(send, { error: /452/g });
      await expect(tx).toHaveEnqueued(send, { times: 2 });
    }),
  );

  test(
    'not and times fail where a job may have run that left no trace',
    inTx(async (tx) => {
      const traceless = defineJob('traceless', { payload: unvalidated<number>(), keepResult: false });
      const brief = defineJob('brief', { payload: unvalidated<number>(), keepResult: 'outcome' });
      const handlers = [handle(traceless, () => undefined), handle(brief, () => undefined)];
      // So far it is known.
      await expect(tx).not.toHaveEnqueued(traceless);
      await queue.enqueue(tx, traceless, 1);
      await queue.enqueue(tx, brief, 1);
      await expect(tx).toHaveEnqueued(traceless, { times: 1 });
      await expect(tx).not.toHaveEnqueued(traceless, { payload: 2 });
      await drainIn(tx, { queue, handlers });
      for (const assertion of [
        expect(tx).not.toHaveEnqueued(traceless),
        expect(tx).toHaveEnqueued(traceless, { times: 0 }),
        expect(tx).not.toHaveCompleted(traceless),
      ]) {
        expect(await failure(assertion)).toMatch(/'traceless' leaves no trace .*\{ ignoreUnkept: true \}$/);
      }
      expect(await failure(expect(tx).not.toHaveEnqueued(brief, { payload: 1 }))).toContain(
        "'brief' leaves no payload to compare",
      );
      await expect(tx).not.toHaveEnqueued(traceless, { ignoreUnkept: true });
      await expect(tx).not.toHaveEnqueued(brief, { payload: 1, ignoreUnkept: true });
      await expect(tx).toHaveEnqueued(brief, { times: 1 });
      await expect(tx).not.toHaveDiscarded(traceless);
    }),
  );

  test(
    'a failure shows what came nearest',
    inTx(async (tx) => {
      expect(await failure(expect(tx).toHaveEnqueued(send))).toBe(
        "expect(db).toHaveEnqueued('send')\n\nNo job is of this kind, nor of any other.",
      );
      await queue.enqueue(tx, other);
      await queue.enqueue(tx, other);
      expect(await failure(expect(tx).toHaveEnqueued(send))).toContain("There are 2 × 'other'.");
      const far = await queue.enqueue(tx, send, { orderId: 3 }, { priority: 9 });
      const near = await queue.enqueue(tx, send, { orderId: 2 });
      const message = await failure(
        expect(tx).toHaveEnqueued(send, { payload: { orderId: 1 }, priority: 5, queue: expect.any(String) }),
      );
      expect(message).toBe(
        `expect(db).toHaveEnqueued('send')

Expected:
  payload: {orderId: 1}
  priority: 5
  queue: Any<String>

Of 2 jobs of this kind none fits. The closest:
  job ${near.id} (due)
    payload.orderId: 2, expected 1
  job ${far.id} (due)
    payload.orderId: 3, expected 1
    priority: 9, expected 5`,
      );
      expect(await failure(expect(tx).toHaveCompleted(send))).toContain('state: "due", expected "completed"');
      expect(await failure(expect(tx).toHaveEnqueued(send, { runIn: { minutes: 1 } }))).toContain(
        'runIn (ms): 0, expected 60000',
      );
      expect(await failure(expect(tx).toHaveEnqueued(send, { times: 3 }))).toContain(
        'Only 2 jobs of this kind are there:',
      );
    }),
  );

  test(
    'a failure of .not shows the jobs that fit, three of them',
    inTx(async (tx) => {
      for (const orderId of [1, 2, 3, 4]) await queue.enqueue(tx, send, { orderId });
      const message = await failure(expect(tx).not.toHaveEnqueued(send));
      expect(message).toContain("expect(db).not.toHaveEnqueued('send')");
      expect(message).toMatch(/4 jobs of this kind fit:\n {2}job \d+ \(due\): payload \{orderId: 1\}/);
      expect(message).toContain('… and 1 more');
      expect(await failure(expect(tx).toHaveEnqueued(send, { times: 1 }))).toContain(
        '4 jobs of this kind fit:',
      );
    }),
  );
});

describe('beside others', () => {
  const database = useTestDatabase();

  test('a transaction tells its own jobs, and a database those of everybody', async () => {
    await queue.enqueue(database.db, other);
    await inTransaction(database.db, async (tx) => {
      await expect(tx).not.toHaveEnqueued(other);
      await queue.enqueue(tx, other);
      await expect(tx).toHaveEnqueued(other, { times: 1 });
    });
    await expect(database.db).toHaveEnqueued(other, { times: 1 });
  });

  test('withinMs waits for a job that another connection enqueues', async () => {
    const late = defineJob('late');
    const seen = expect(database.db).toHaveEnqueued(late, { withinMs: 10_000 });
    await queue.enqueue(database.db, late);
    await seen;
    // For its end as well.
    const ended = expect(database.db).not.toHaveEnqueued(late, { withinMs: 10_000, attempt: 0 });
    await database.client`delete from queue_jobs where kind = 'late'`;
    await ended;
    expect(await failure(expect(database.db).toHaveEnqueued(late, { withinMs: 30 }))).toContain(
      'Waited: 30 ms',
    );
  });

  test('matchersOf reads the tables of another queue, and own columns', async () => {
    const tables = createQueueTables({
      prefix: 'tenant_',
      columns: { tenantId: text('tenant_id').notNull() },
    });
    for (const statement of tableStatements(Object.values(tables))) await database.client.unsafe(statement);
    const ofTenants = createQueue({ tables });
    const context = { equals: (a: unknown, b: unknown) => a === b };
    const { toHaveEnqueued } = matchersOf(ofTenants);
    await ofTenants.enqueue(database.db, other, undefined, { tenantId: 'a' });
    const matched = async (tenantId: string) =>
      await toHaveEnqueued.call(context, database.db, other, { own: { tenantId } });
    expect((await matched('a')).pass).toBe(true);
    const { pass, message } = await matched('b');
    expect(pass).toBe(false);
    expect(message()).toContain('tenantId: "a", expected "b"');
  });

  test('what is wrong is refused', async () => {
    // @ts-expect-error no definition
    await expect(expect(database.db).toHaveEnqueued('send')).rejects.toThrow('takes a job definition');
    // @ts-expect-error no such name
    await expect(expect(database.db).toHaveEnqueued(send, { payloads: 1 })).rejects.toThrow(
      "toHaveEnqueued: what is expected: unknown option 'payloads'; did you mean payload?",
    );
    // @ts-expect-error of toHaveCompleted
    await expect(expect(database.db).toHaveEnqueued(send, { output: 'a' })).rejects.toThrow(
      'toHaveEnqueued: only a completed job has an output: use toHaveCompleted',
    );
    await expect(expect(42).toHaveEnqueued(send)).rejects.toThrow('needs a Drizzle database');
  });
});
