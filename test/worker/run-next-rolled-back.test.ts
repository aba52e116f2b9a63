import { createQueue, defineJob, fixedBackoff, handle, runNext, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { type Backend, twoBackends, untilBlocked } from '../queries/support/locks.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';

/** Of an attempt whose transaction is rolled back and that is settled after it: what becomes of the key by which its job waited. */

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ keys: control.queueKeys });
const hanging = (maxAttempts: number) =>
  defineJob('sync', {
    payload: unvalidated<number>(),
    timeoutMs: 1_000,
    maxAttempts,
    backoff: fixedBackoff(3_600_000),
  });
let caller: Backend;

beforeAll(async () => {
  await addControlTables(database);
  [caller] = await twoBackends(database);
});
beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_keys');
});

const never = () => new Promise<never>(() => undefined);

test('the job waits by no key once an attempt of it has failed', async () => {
  const sync = hanging(3);
  const { id } = await queue.enqueue(database.db, sync, 1, { replace: { key: 'k' } });
  expect(await runNext(database.db, { queue, handlers: [handle(sync, never)] })).toMatchObject({
    outcome: 'failed',
  });
  const [row] = await database.client`select attempt, waiting_key from queue_jobs where id = ${id}`;
  expect(row).toEqual({ attempt: 1, waiting_key: null });
  expect(await queue.enqueue(database.db, sync, 2, { replace: { key: 'k' } })).toMatchObject({
    outcome: 'enqueued',
  });
});

test.each([
  ['replace', { replace: { key: 'k' } }],
  ['debounce', { debounce: { key: 'k', delayMs: 1 } }],
  ['a trailing throttle', { throttle: { key: 'k', perMs: 1, trailing: true } }],
] as const)('%s: a call that came meanwhile is run, with its own attempts', async (_, rule) => {
  const sync = hanging(1);
  const first = await queue.enqueue(database.db, sync, 1, rule);
  await database.client`update queue_jobs set run_at = now() - interval '1 minute'`;
  const started = gate();
  const replaced = gate();
  // The call is first in the row's line, but what it does then is not known to come before the settlement.
  atFaultPoints(async (point) => {
    if (point === 'runNext: rolled back') await replaced.opened;
  });
  onTestFinished(() => atFaultPoints());
  const ran = runNext(database.db, {
    queue,
    handlers: [
      handle(sync, async () => {
        started.open();
        await never();
      }),
    ],
  });
  await started.opened;
  const second = queue.enqueue(caller.db, sync, 2, rule);
  await untilBlocked(database, caller);
  expect(await second).toMatchObject({ id: first.id, outcome: 'replaced' });
  replaced.open();
  expect(await ran).toMatchObject({ outcome: 'failed' });
  await database.client`update queue_jobs set run_at = now() - interval '1 minute'`;
  const seen: number[] = [];
  const handlers = [handle(sync, ({ payload }) => void seen.push(payload))];
  expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'completed' });
  expect(seen).toEqual([2]);
});
