import { createQueue, createWorker, defineJob, handle, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

/** Longer than a queue is polled often after a job. */
const HANDLER_MS = 400;

const database = useTestDatabase({ max: 8 });
const queue = createQueue({ limits: limitsIn(control, { q: { kinds: { few: { concurrency: 1 } } } }) });
const few = defineJob('few', { queue: 'q' });
const other = defineJob('other', { queue: 'q' });

beforeAll(() => addControlTables(database));

test('a slot that a kind has is used at once when it is free, although others run', async () => {
  const end = gate();
  const ran = { few: 0, other: 0 };
  const worker = createWorker(database.db, {
    queue,
    // No look at what is due comes before the test is over.
    pollIntervalMs: 60_000,
    queues: { q: { concurrency: 5 } },
    handlers: [
      handle(few, async () => {
        ran.few++;
        await new Promise((resolve) => setTimeout(resolve, HANDLER_MS));
      }),
      handle(other, async () => {
        ran.other++;
        await end.opened;
      }),
    ],
  });
  onTestFinished(async () => {
    end.open();
    await worker.stop();
  });
  await worker.start();
  await queue.enqueue(database.db, other);
  await until(() => ran.other === 1);
  await queue.enqueueMany(database.db, few, new Array(6).fill({}));
  await until(() => ran.few === 3);
  // Nor does one at the limits.
  const app = await database.client.reserve();
  onTestFinished(() => app.release());
  await app`begin`;
  onTestFinished(async () => void (await app`rollback`));
  await app`lock table queue_limits in access exclusive mode`;
  // Long before one comes all the same.
  await until(() => ran.few === 6, { timeoutMs: 20_000 });
});
