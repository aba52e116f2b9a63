import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DiagLogLevel, diag, metrics } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import {
  cancel,
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handle,
  NonRetryableError,
  snooze,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import {
  type Figures,
  type ObserveOptions,
  observe,
  otel,
  type Vitals,
  type WorkflowFigures,
} from 'drizzle-queue/opentelemetry';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { nextEvent } from '../worker/next-event.ts';
import { readPanels, readRules, used } from './operate-files.ts';
import { namesIn, samplesOf, sumOf } from './prometheus-text.ts';

const database = useTestDatabase();
const work = defineJob('work', {
  payload: unvalidated<string>(),
  queue: 'mail',
  maxAttempts: 2,
  backoff: fixedBackoff(0),
});

beforeEach(() => clearTables(database.client));
afterEach(() => {
  metrics.disable();
  diag.disable();
  vi.restoreAllMocks();
});

/** The real SDK with its Prometheus exporter behind a server of its own; what a scrape gets. */
async function prometheus() {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const provider = new MeterProvider({ readers: [exporter] });
  const server = createServer((request, response) => exporter.getMetricsRequestHandler(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    await provider.shutdown();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const scrape = async () => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return { provider, scrape };
}

const figures: Figures = {
  queues: [
    { queue: 'mail', due: 5, running: 2, scheduled: 7, waiting: 1, oldestDueMs: 1_500, workers: 3 },
    { queue: 'idle', due: 0, running: 0, scheduled: 0, oldestDueMs: undefined },
    { queue: 'locked', due: 0, running: 0, scheduled: 0, oldestDueMs: undefined, precision: 'unknown' },
    { queue: 'seen', due: 0, running: 0, scheduled: 0, oldestDueMs: 2_500, precision: 'unknown' },
    { queue: 'unknown', due: 9, running: 0, scheduled: 0, oldestDueMs: undefined },
  ],
};

const vitals: Vitals = {
  vitals: [
    { code: 'oldest-due', severity: 'error', queue: 'mail', value: 900_000 },
    { code: 'retry-rate', severity: 'warning', queue: 'mail', kind: 'work', value: 0.3 },
    { code: 'dead-rows', severity: 'ok', value: 1_234 },
    { code: 'oldest-snapshot', severity: 'ok', value: 2_500 },
    { code: 'discard-rate', severity: 'unknown' },
  ],
};

const workflows: WorkflowFigures = { open: 3, oldestOpenMs: 4_500, waiting: 12 };

/** A worker that has done a job of each kind of end, with all that is measured about it. */
async function runAll(provider: MeterProvider, options: ObserveOptions = {}) {
  const meter = provider.getMeter('test');
  const queue = createQueue({ around: otel({ meter, propagate: false }) });
  const worker = createWorker(database.db, {
    queue,
    name: 'web-1',
    log: false,
    concurrency: 2,
    handlers: [
      handle(work, ({ payload }) => {
        if (payload === 'bad') throw new NonRetryableError('no');
        if (payload === 'retry') throw new TypeError('no');
        if (payload === 'snooze') return snooze(3_600_000);
        if (payload === 'cancel') return cancel('no');
      }),
    ],
  });
  const stop = observe(worker, { meter, ...options });
  for (const payload of ['good', 'bad', 'retry', 'snooze', 'cancel']) {
    await queue.enqueue(database.db, work, payload);
  }
  await queue.enqueueMany(database.db, work, [{ payload: 'good' }, { payload: 'good' }]);
  const ready = [nextEvent(worker, 'idle'), nextEvent(worker, 'listening')];
  await worker.start();
  await Promise.all(ready);
  return { worker, queue, stop };
}

describe('a worker that is observed', () => {
  test('reports attempts by outcome, durations and waits', async () => {
    const { provider, scrape } = await prometheus();
    const { worker } = await runAll(provider);
    const text = await scrape();
    await worker.stop();
    const attempts = (outcome: string) =>
      sumOf(text, 'drizzle_queue_job_attempts_total', { drizzle_queue_job_outcome: outcome });
    expect(attempts('completed')).toBe(3);
    expect(attempts('retried')).toBe(1);
    expect(attempts('discarded')).toBe(2);
    expect(attempts('snoozed')).toBe(1);
    expect(attempts('cancelled')).toBe(1);
    expect(sumOf(text, 'messaging_client_consumed_messages_total', {})).toBe(8);
    expect(sumOf(text, 'messaging_client_sent_messages_total', {})).toBe(7);
    expect(sumOf(text, 'drizzle_queue_workers_gone_total', {})).toBe(0);
    const durations = samplesOf(text, 'messaging_process_duration_count');
    expect(durations.reduce((sum, { value }) => sum + value, 0)).toBe(8);
    expect(durations.map(({ labels }) => labels.error_type ?? '').sort()).toEqual([
      '',
      'NonRetryableError',
      'TypeError',
    ]);
    expect(sumOf(text, 'drizzle_queue_job_wait_count', {})).toBe(8);
    for (const operation of ['send', 'receive', 'settle']) {
      const label = { messaging_operation_name: operation };
      expect(sumOf(text, 'messaging_client_operation_duration_count', label)).toBeGreaterThan(0);
      expect(sumOf(text, 'messaging_client_operation_duration_sum', label)).toBeLessThan(60);
    }
    for (const { labels } of samplesOf(text, 'drizzle_queue_job_attempts_total')) {
      expect(labels).toMatchObject({
        messaging_system: 'drizzle_queue',
        messaging_destination_name: 'mail',
        drizzle_queue_job_kind: 'work',
      });
    }
    // In seconds, and beyond the conventions' ten.
    const bounds = samplesOf(text, 'messaging_process_duration_bucket').map(({ labels }) => labels.le);
    expect(bounds).toEqual(expect.arrayContaining(['0.005', '10', '900', '+Inf']));
  });

  test('counts the jobs of a flow by their own kinds and queues', async () => {
    await addWorkflowTables(database);
    const { provider, scrape } = await prometheus();
    const queue = createQueue({
      around: otel({ meter: provider.getMeter('test') }),
      workflows: workflowsIn(workflowTables),
    });
    const [resize, publish] = [defineJob('resize', { queue: 'images' }), defineJob('publish')];
    await queue.workflows.enqueueFlow(database.db, (flow) => {
      const resized = [flow.add(resize), flow.add(resize)];
      flow.add(publish, undefined, { after: resized });
    });
    const text = await scrape();
    const sent = (kind: string, queue: string) =>
      sumOf(text, 'messaging_client_sent_messages_total', {
        drizzle_queue_job_kind: kind,
        messaging_destination_name: queue,
      });
    expect([sent('resize', 'images'), sent('publish', 'default')]).toEqual([2, 1]);
    expect(
      sumOf(text, 'messaging_client_operation_duration_count', { messaging_operation_name: 'send' }),
    ).toBe(1);
  });

  test('reports its slots, whether it listens, and whether it is ready', async () => {
    const { provider, scrape } = await prometheus();
    const { worker, stop } = await runAll(provider);
    const gauge = (text: string, name: string) =>
      sumOf(text, `drizzle_queue_worker_${name}`, { messaging_client_id: 'web-1' });
    const text = await scrape();
    expect([
      gauge(text, 'slots'),
      gauge(text, 'busy'),
      gauge(text, 'listening'),
      gauge(text, 'ready'),
    ]).toEqual([2, 0, 1, 1]);
    await worker.stop();
    expect(gauge(await scrape(), 'ready')).toBe(0);
    // The exporter goes on printing the last value, but nobody is asked any more.
    stop();
    const asked = vi.spyOn(worker, 'health');
    await scrape();
    expect(asked).not.toHaveBeenCalled();
  });

  test('counts nothing twice, and no job that never began', async () => {
    const { provider, scrape } = await prometheus();
    const queue = createQueue();
    const { id } = await queue.enqueue(database.db, work, 'cancelled before');
    await database.client`update queue_jobs set cancel_reason = 'not wanted' where id = ${id}`;
    const failing = await queue.enqueue(database.db, work, 'cancelled as it fails');
    const worker = createWorker(database.db, {
      queue,
      log: false,
      handlers: [
        handle(work, async ({ signal }) => {
          await queue.cancel(database.db, failing.id, { reason: 'enough' });
          await until(() => signal.aborted);
          throw new Error('ended');
        }),
      ],
    });
    observe(worker, { meter: provider.getMeter('test') });
    const idle = nextEvent(worker, 'idle');
    await worker.start();
    await idle;
    const text = await scrape();
    await worker.stop();
    const outcomes = samplesOf(text, 'drizzle_queue_job_attempts_total');
    expect(outcomes.map(({ labels, value }) => [labels.drizzle_queue_job_outcome, value])).toEqual([
      ['cancelled', 1],
    ]);
    expect(sumOf(text, 'messaging_process_duration_count', {})).toBe(1);
  });

  test('is not silenced: errors that nobody else listens to are still printed', async () => {
    const { provider } = await prometheus();
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    const worker = createWorker(database.db, {
      queue: createQueue(),
      log: false,
      handlers: [handle(work, () => {})],
    });
    observe(worker, { meter: provider.getMeter('test') });
    worker.on('completed', () => {
      throw new Error('unheard');
    });
    const completed = nextEvent(worker, 'completed');
    await createQueue().enqueue(database.db, work, 'x');
    await worker.start();
    await completed;
    await worker.stop();
    expect(print).toHaveBeenCalledWith(
      'drizzle-queue worker:',
      expect.objectContaining({ message: 'unheard' }),
    );
  });
});

describe('figures of the queues', () => {
  test('are asked for at each scrape', async () => {
    const { provider, scrape } = await prometheus();
    let asked = 0;
    const stats = async () => {
      asked++;
      return figures;
    };
    const { worker, stop } = await runAll(provider, { stats, vitals: async () => vitals });
    expect(asked).toBe(0);
    const text = await scrape();
    expect(asked).toBe(1);
    const jobs = (queue: string, state: string) =>
      sumOf(text, 'drizzle_queue_jobs', {
        messaging_destination_name: queue,
        drizzle_queue_job_state: state,
      });
    expect([
      jobs('mail', 'due'),
      jobs('mail', 'running'),
      jobs('mail', 'scheduled'),
      jobs('mail', 'waiting'),
    ]).toEqual([5, 2, 7, 1]);
    const oldest = samplesOf(text, 'drizzle_queue_oldest_due');
    expect(oldest.map(({ labels, value }) => [labels.messaging_destination_name, value])).toEqual([
      ['mail', 1.5],
      ['idle', 0],
      ['seen', 2.5],
    ]);
    expect([jobs('idle', 'due'), jobs('locked', 'due'), jobs('seen', 'due')]).toEqual([
      0,
      undefined,
      undefined,
    ]);
    expect(sumOf(text, 'drizzle_queue_workers', { messaging_destination_name: 'mail' })).toBe(3);
    const rank = (code: string) => sumOf(text, 'drizzle_queue_vital', { drizzle_queue_vital_code: code });
    expect([rank('oldest-due'), rank('retry-rate'), rank('dead-rows'), rank('discard-rate')]).toEqual([
      2,
      1,
      0,
      undefined,
    ]);
    expect(sumOf(text, 'drizzle_queue_dead_rows', {})).toBe(1_234);
    expect(sumOf(text, 'drizzle_queue_oldest_snapshot', {})).toBe(2.5);
    stop();
    await scrape();
    expect(asked).toBe(1);
    await worker.stop();
  });

  test('of flows are asked for at each scrape, too', async () => {
    const { provider, scrape } = await prometheus();
    const answers: WorkflowFigures[] = [workflows, { open: 0, oldestOpenMs: undefined, waiting: 0 }];
    const { worker, stop } = await runAll(provider, {
      workflows: async () => answers.shift() ?? expect.unreachable(),
    });
    const read = async () => {
      const text = await scrape();
      return ['flows', 'oldest_flow', 'waiting_jobs'].map((name) => sumOf(text, `drizzle_queue_${name}`, {}));
    };
    expect(await read()).toEqual([3, 4.5, 12]);
    expect(await read()).toEqual([0, 0, 0]);
    stop();
    await scrape();
    expect(answers).toEqual([]);
    await worker.stop();
  });

  test('that cannot be read are left out, and the scrape goes on', async () => {
    const { provider, scrape } = await prometheus();
    const warned: string[] = [];
    const ignore = () => {};
    diag.setLogger(
      { warn: (text) => warned.push(text), error: ignore, info: ignore, debug: ignore, verbose: ignore },
      DiagLogLevel.WARN,
    );
    const stats = () => database.client.unsafe('select 1/0') as unknown as Promise<Figures>;
    const { worker } = await runAll(provider, { stats });
    const text = await scrape();
    await worker.stop();
    expect(samplesOf(text, 'drizzle_queue_jobs')).toEqual([]);
    expect(samplesOf(text, 'drizzle_queue_worker_slots')).toHaveLength(1);
    expect(warned).toEqual([
      expect.stringMatching(/^drizzle-queue: figures could not be read: PostgresError: division/),
    ]);
  });
});

test('figures that do not come in time delay no other metric, and are not asked for again meanwhile', async () => {
  const { provider, scrape } = await prometheus();
  const warn = vi.fn();
  const ignore = () => {};
  diag.setLogger({ warn, error: ignore, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN);
  const stats = vi.fn(() => new Promise<Figures>(ignore));
  const { worker } = await runAll(provider, { stats, vitals: async () => vitals });
  for (let scrapes = 0; scrapes < 2; scrapes++) {
    const text = await scrape();
    expect(samplesOf(text, 'drizzle_queue_worker_ready')).toHaveLength(1);
    expect(samplesOf(text, 'drizzle_queue_vital')).not.toEqual([]);
    expect(samplesOf(text, 'drizzle_queue_jobs')).toEqual([]);
  }
  await worker.stop();
  expect(stats).toHaveBeenCalledTimes(1);
  expect(warn).toHaveBeenCalledWith(
    expect.stringMatching(/^drizzle-queue: figures .*: no answer within 5 s$/),
  );
});

test('enqueues are counted with a provider that is registered after createQueue', async () => {
  const { provider, scrape } = await prometheus();
  const queue = createQueue({ around: otel() });
  await queue.enqueue(database.db, work, 'before');
  metrics.setGlobalMeterProvider(provider);
  await queue.enqueue(database.db, work, 'after', { uniqueKey: 'k' });
  await queue.enqueue(database.db, work, 'again', { uniqueKey: 'k' });
  await expect(queue.enqueue(database.db, work, 'x', { metadata: { a: 1n } })).rejects.toThrow();
  const text = await scrape();
  expect(sumOf(text, 'messaging_client_sent_messages_total', {})).toBe(1);
  expect(sumOf(text, 'messaging_client_operation_duration_count', {})).toBe(2);
});

test('the dashboard and the alert rules name metrics and labels that the exporter prints', async () => {
  const { provider, scrape } = await prometheus();
  const { worker } = await runAll(provider, {
    stats: async () => figures,
    vitals: async () => vitals,
    workflows: async () => workflows,
  });
  const text = await scrape();
  await worker.stop();
  const printed = namesIn(text);
  const panels = await readPanels();
  const rules = await readRules();
  expect(panels.length).toBeGreaterThan(15);
  expect(rules.length).toBeGreaterThan(10);
  const all = [...panels, ...rules].map((expression) => used(expression));
  const unknown = all.flatMap(({ names }) => names.filter((name) => !printed.metrics.has(name)));
  expect(unknown).toEqual([]);
  const strange = all.flatMap(({ labels }) => labels.filter((label) => !printed.labels.has(label)));
  expect(strange).toEqual([]);
  // And nothing that is measured is left out of the dashboard.
  const shown = new Set(panels.flatMap((panel) => used(panel).names.map(familyOf)));
  expect(
    [...printed.metrics].map(familyOf).filter((name) => !shown.has(name) && name !== 'drizzle_queue_workers'),
  ).toEqual([]);
});

test('expressions are read as Prometheus reads them', () => {
  expect(
    used('sum by (le, kind) (rate(a_bucket{queue=~"x|y{",state!=""}[5m])) / max(b_total) > 0.5 and c'),
  ).toEqual({
    names: ['a_bucket', 'b_total', 'c'],
    labels: ['le', 'kind', 'queue', 'state'],
  });
});

test('options that are wrong are refused', () => {
  const worker = createWorker(database.db, {
    queue: createQueue(),
    handlers: [handle(work, () => {})],
    log: false,
  });
  const watch = (options: unknown) => () => observe(worker, options as ObserveOptions);
  expect(watch({ meter: {} })).toThrow(/observe: meter must be what metrics.getMeter\(\) returns/);
  expect(watch({ stats: { db: 1 } })).toThrow(
    /observe: stats must be a function, such as \(\) => queue.stats\(db\)/,
  );
  expect(watch({ workflows: {} })).toThrow(
    /observe: workflows must be a function, such as \(\) => queue.workflows.stats\(db\)/,
  );
  expect(watch({ statistics: () => {} })).toThrow(/observe: unknown option 'statistics'/);
  expect(() => observe({} as typeof worker)).toThrow(/observe takes what createWorker\(\) returns/);
});

/** A histogram has several names. */
function familyOf(name: string): string {
  return name.replace(/_(bucket|sum|count)$/, '');
}
