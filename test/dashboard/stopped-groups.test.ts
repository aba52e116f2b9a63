import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, onTestFinished, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { another, page, textOf } from './support/visits.ts';

const database = useTestDatabase({ max: 10 });
const HOUR_MS = 3_600_000;
const queue = createQueue({
  limits: limitsIn(control, {
    limited: { groups: { concurrency: 1 } },
    // Still more than an hour when the page is read.
    rated: { groups: { rate: { limit: 1, perMs: 1.5 * HOUR_MS } } },
    ordered: { groups: { serial: 'end' } },
    stopped: { groups: { serial: 'success' } },
    unserved: { groups: 'fair' },
  }),
});
const options = { payload: unvalidated<'waits' | 'returns' | 'throws'>(), group: () => 'tenant' };
const workOf = (name: string, inQueue = name) => defineJob(`work of ${name}`, { ...options, queue: inQueue });
const works = ['limited', 'rated', 'ordered', 'stopped', 'unserved'].map((name) => workOf(name));
const [limited, rated, ordered, stopped, unserved] = works;
const unknown = workOf('no handler', 'unserved');

beforeAll(() => addControlTables(database));

test('the page of the limits says of each group why it does not move', async () => {
  const end = gate();
  const worker = createWorker(database.db, {
    queue,
    log: false,
    handlers: works.map((work) =>
      handle(work, async ({ payload }) => {
        if (payload === 'waits') await end.opened;
        if (payload === 'throws') throw new Error('no');
      }),
    ),
  });
  onTestFinished(async () => {
    end.open();
    await worker.stop();
  });
  await worker.start();
  const enqueue = async (
    job: ReturnType<typeof workOf> | undefined,
    payload: 'waits' | 'returns' | 'throws',
  ) => await queue.enqueue(database.db, job ?? unknown, payload, { maxAttempts: 1 });
  for (const job of [limited, ordered]) await enqueue(job, 'waits');
  for (const job of [rated, unserved]) await enqueue(job, 'returns');
  const { id } = await enqueue(stopped, 'throws');
  for (const job of [limited, rated, ordered, stopped, unknown]) await enqueue(job, 'returns');

  // A page rests from what it took, on a busy machine for minutes. Each of these is the first of its dashboard.
  const read = () =>
    page(
      createDashboard({
        db: another(database.db),
        queue,
        basePath: '/',
        authorize: () => 'read',
        onAction: () => {},
      }),
      '/limits',
    );
  const said = {
    limited: /tenant at its limit 1/,
    rated: /tenant rate used up in 1 h 0/,
    ordered: /tenant in order 1/,
    stopped: new RegExp(`tenant blocked by #${id} 0`),
    unserved: /tenant no handler 0/,
  };
  for (const text of Object.values(said)) {
    await until(async () => text.test(textOf(await read()))).catch(async () => {
      throw new Error(`not said: ${text} in ${textOf(await read())}`);
    });
  }
});
