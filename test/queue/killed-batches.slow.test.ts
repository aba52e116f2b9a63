import { createQueue, defineJob, drain, handle, NonRetryableError, unvalidated } from 'drizzle-queue';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { foldMetrics } from '../../src/features/metrics/queries/fold-metrics.ts';
import { reportMetrics } from '../../src/features/metrics/queries/report-metrics.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addMetricsTable } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startWorkerProcess } from '../worker/worker-process.ts';

const database = useTestDatabase();
const queue = createQueue();
const job = defineJob('j', { payload: unvalidated<number>(), queue: 'q' });
const JOBS = 50;
const entries = Array.from({ length: JOBS }, (_, n) => ({ payload: n }));
const known = { tables, metrics: queueMetrics };

beforeAll(() => addMetricsTable(database));
beforeEach(() => clearTables(database.client));

/** The child process does it until it is killed. */
const start = (what: string) =>
  startWorkerProcess('queue/fixtures/batching-program.ts', { DATABASE_URL: database.url, WHAT: what });

async function killed(what: string): Promise<void> {
  const { child, output } = start(what);
  await until(() => child.exitCode !== null || child.signalCode !== null);
  expect([child.signalCode, output()]).toEqual(['SIGKILL', '']);
}

/** Each job's own number and where it is, in their order. */
async function whereabouts(): Promise<[payload: unknown, state: string][]> {
  const { jobs } = await queue.list(database.db, { limit: 1_000 });
  return jobs.map(({ payload, state }): [unknown, string] => [payload, state]).reverse();
}

const all = (state: (n: number) => string) => entries.map(({ payload }) => [payload, state(payload)]);
const discardAll = () =>
  drain(database.db, {
    queue,
    handlers: [
      handle(job, () => {
        throw new NonRetryableError('no');
      }),
    ],
    deadlineMs: 60_000,
  });

test('a process that dies between two batches of cancelMany has cancelled the first ones, whole', async () => {
  await queue.enqueueMany(database.db, job, entries);
  await killed('cancel');
  expect(await whereabouts()).toEqual(all((n) => (n < 20 ? 'cancelled' : 'due')));
  expect(await queue.cancelMany(database.db, { queue: 'q' })).toMatchObject({ cancelled: JOBS - 20 });
  expect(await whereabouts()).toEqual(all(() => 'cancelled'));
});

test('a process that dies between two batches of redrive has put back the first ones, each once', async () => {
  await queue.enqueueMany(database.db, job, entries);
  await discardAll();
  await killed('redrive');
  const after = await whereabouts();
  expect(after.map(([payload]) => payload)).toEqual(entries.map(({ payload }) => payload));
  expect(after.filter(([, state]) => state === 'due')).toHaveLength(20);
  expect(after.filter(([, state]) => state === 'discarded')).toHaveLength(JOBS - 20);
  expect(await queue.redrive(database.db, { queue: 'q' })).toEqual({ redriven: JOBS - 20, duplicates: 0 });
  const ran: number[] = [];
  const handlers = [handle(job, ({ payload }) => void ran.push(payload))];
  await drain(database.db, { queue, handlers, deadlineMs: 60_000 });
  expect(ran.toSorted((a, b) => a - b)).toEqual(entries.map(({ payload }) => payload));
});

test.each(['runs', 'has not begun'])(
  'an hour of metrics is added up once when a process dies while its fold %s',
  async (when) => {
    await database.client`truncate queue_metrics`;
    const counts = {
      completed: 2,
      retried: 1,
      discarded: 0,
      cancelled: 0,
      snoozed: 0,
      interrupted: 0,
      lost: 0,
    };
    const reports = [1, 2, 3].map((report) => ({
      ...counts,
      ...{ report, queue: 'q', kind: 'j', waitMs: 30, runMs: 60, wait: { 3: 2 }, run: { 8: 3 } },
    }));
    await reportMetrics(database.db, known, 1, reports);
    await database.client`update queue_metrics set at = at - interval '3 hours'`;
    const [other] = await database.connect();
    if (other === undefined) throw new Error('there is no other connection');
    // Another that folds the same hour has written it and not committed: the child's statement waits for it.
    await other.client.unsafe('begin');
    if (when === 'runs') await foldMetrics(other.db, known);
    else await other.client.unsafe('lock table queue_metrics');
    const child = start('fold');
    await until(async () => {
      const [row] = await database.client<{ waiting: number }[]>`
        select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return row?.waiting === 1;
    });
    expect(await child.end('SIGKILL')).toBe('SIGKILL');
    // What the other has written is undone. The server ends the child's statement whenever it likes.
    await other.client.unsafe('rollback');
    await foldMetrics(database.db, known);
    await until(async () => !(await foldMetrics(database.db, known)));
    const hours = await database.client`
      select completed::int, retried::int, wait, run from queue_metrics where minutes = 60`;
    expect([...hours]).toEqual([{ completed: 6, retried: 3, wait: { 3: 6 }, run: { 8: 9 } }]);
  },
);
