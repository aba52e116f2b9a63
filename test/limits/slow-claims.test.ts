import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { addControlTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 8 });
const queue = createQueue({ limits: limitsIn(control, { few: { concurrency: 2 } }) });
const few = defineJob('few', { payload: unvalidated<{ name: string }>(), queue: 'few' });

beforeAll(() => addControlTables(database));
afterEach(() => atFaultPoints());

test('a slot waits for the claim that is under way, however long that takes, also while others lack slots', async () => {
  const begun: string[] = [];
  const over = new Map<string, () => void>();
  const end = gate();
  const workerOf = (concurrency: number) => {
    const handler = handle(few, async ({ payload: { name } }) => {
      begun.push(name);
      const own = gate();
      over.set(name, own.open);
      await Promise.race([own.opened, end.opened]);
    });
    const worker = createWorker(database.db, {
      queue,
      handlers: [handler],
      queues: { few: { concurrency } },
    });
    onTestFinished(async () => {
      end.open();
      await worker.stop();
    });
    return worker;
  };
  const slots = async () => {
    const rows = await database.client<{ has: number }[]>`
      select (e.lease ->> 0)::int as has from queue_usage as u cross join jsonb_each(u.leases) as e(worker, lease)
      where u.queue = 'few' order by e.worker::int`;
    return rows.map(({ has }) => has);
  };

  const slow = workerOf(1);
  await slow.start();
  await queue.enqueue(database.db, few, { name: 'first' });
  await until(() => begun.length === 1);

  let questions = 0;
  let isClaiming = false;
  let answer: () => void = () => undefined;
  onTestFinished(() => answer());
  atFaultPoints(async (point) => {
    if (point === 'lease: taken') questions++;
    if (point !== 'claim: answered' || isClaiming) return;
    isClaiming = true;
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
  });
  await queue.enqueue(database.db, few, { name: 'second' });
  over.get('first')?.();
  await until(() => isClaiming);

  questions = 0;
  await workerOf(2).start();
  const others = Array.from({ length: 10 }, () => ({ payload: { name: 'other' } }));
  await queue.enqueueMany(database.db, few, others);
  // It gets one, and asks for another again and again: after 100, 200 and 400 ms, or half of that.
  await until(() => questions >= 5 || begun.length > 2);
  expect(begun).toEqual(['first', 'other']);
  expect(await slots()).toEqual([1, 1]);
  answer();
  await until(() => begun.length === 3);
  expect(begun).toEqual(['first', 'other', 'second']);
});
