import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import * as conventions from '@opentelemetry/semantic-conventions/incubating';
import {
  createQueue,
  createWorker,
  defineJob,
  handle,
  handleBatch,
  NonRetryableError,
  unvalidated,
} from 'drizzle-queue';
import { observe, otel } from 'drizzle-queue/opentelemetry';
import { expect, onTestFinished, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { nextEvent } from '../worker/next-event.ts';
import { useTracing } from './sdk.ts';

const database = useTestDatabase();
const { spans } = useTracing();
const work = defineJob('work', { payload: unvalidated<string>() });
const together = defineJob('together', { payload: unvalidated<string>() });

const {
  ATTR_MESSAGING_OPERATION_NAME: OPERATION_NAME,
  ATTR_MESSAGING_OPERATION_TYPE: OPERATION_TYPE,
  ATTR_MESSAGING_SYSTEM: SYSTEM,
  ATTR_MESSAGING_DESTINATION_NAME: DESTINATION,
} = conventions;

/** What `model/messaging/metrics.yaml` of the conventions requires; the package has the names alone. */
const REQUIRED: Readonly<Record<string, { readonly unit: string; readonly attributes: readonly string[] }>> =
  {
    [conventions.METRIC_MESSAGING_CLIENT_OPERATION_DURATION]: {
      unit: 's',
      attributes: [SYSTEM, OPERATION_NAME, OPERATION_TYPE, DESTINATION],
    },
    [conventions.METRIC_MESSAGING_PROCESS_DURATION]: {
      unit: 's',
      attributes: [SYSTEM, OPERATION_NAME, DESTINATION],
    },
    [conventions.METRIC_MESSAGING_CLIENT_SENT_MESSAGES]: {
      unit: '{message}',
      attributes: [SYSTEM, OPERATION_NAME, DESTINATION],
    },
    [conventions.METRIC_MESSAGING_CLIENT_CONSUMED_MESSAGES]: {
      unit: '{message}',
      attributes: [SYSTEM, OPERATION_NAME, DESTINATION],
    },
  };

const constantsOf = (prefix: string): ReadonlySet<unknown> =>
  new Set(Object.entries(conventions).flatMap(([name, value]) => (name.startsWith(prefix) ? [value] : [])));
const METRICS = constantsOf('METRIC_');
const ATTRIBUTES = constantsOf('ATTR_');
const OPERATION_TYPES = constantsOf('MESSAGING_OPERATION_TYPE_VALUE_');

/** Enqueues, runs and fails jobs, one by one and in a batch; returns all metrics. */
async function measureAll() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => provider.shutdown());
  const meter = provider.getMeter('test');
  const queue = createQueue({ around: otel({ meter }) });
  const worker = createWorker(database.db, {
    queue,
    log: false,
    handlers: [
      handle(work, ({ payload }) => {
        if (payload === 'bad') throw new NonRetryableError('no');
      }),
      handleBatch(together, { maxSize: 2 }, () => undefined),
    ],
  });
  observe(worker, {
    meter,
    stats: () => queue.stats(database.db),
    vitals: () => queue.vitals(database.db),
  });
  await queue.enqueue(database.db, work, 'good');
  await queue.enqueue(database.db, work, 'bad');
  await queue.enqueueMany(database.db, together, [{ payload: 'a' }, { payload: 'b' }]);
  const idle = nextEvent(worker, 'idle');
  await worker.start();
  await idle;
  await worker.stop();
  await reader.forceFlush();
  return exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap(({ metrics }) => metrics);
}

test('names and attributes of metrics are those of the semantic conventions', async () => {
  const metrics = await measureAll();
  const names = metrics.map(({ descriptor }) => descriptor.name);
  expect(names).toEqual(expect.arrayContaining(Object.keys(REQUIRED)));
  for (const { descriptor, dataPoints } of metrics) {
    const { name, unit } = descriptor;
    // What the conventions have no name for is ours.
    if (!name.startsWith('drizzle_queue.')) expect(METRICS).toContain(name);
    const required = REQUIRED[name];
    if (required !== undefined) expect({ name, unit }).toEqual({ name, unit: required.unit });
    for (const { attributes } of dataPoints) {
      expect({ name, attributes: Object.keys(attributes) }).toEqual({
        name,
        attributes: expect.arrayContaining([...(required?.attributes ?? [SYSTEM])]),
      });
      for (const key of Object.keys(attributes))
        if (!key.startsWith('drizzle_queue.')) expect(ATTRIBUTES).toContain(key);
      const type = attributes[OPERATION_TYPE];
      if (type !== undefined) expect(OPERATION_TYPES).toContain(type);
    }
  }
});

test('attributes of spans are those of the semantic conventions', async () => {
  await measureAll();
  expect(new Set(spans().map(({ name }) => name))).toEqual(
    new Set(['send work', 'send together', 'process work', 'process together']),
  );
  for (const { name, attributes } of spans()) {
    expect({ name, keys: Object.keys(attributes) }).toEqual({
      name,
      keys: expect.arrayContaining([SYSTEM, OPERATION_NAME, OPERATION_TYPE, DESTINATION]),
    });
    expect(OPERATION_TYPES).toContain(attributes[OPERATION_TYPE]);
    for (const key of Object.keys(attributes))
      if (!key.startsWith('drizzle_queue.')) expect(ATTRIBUTES).toContain(key);
  }
});
