import { AsyncLocalStorage } from 'node:async_hooks';
import { inspect } from 'node:util';
import {
  baggageEntryMetadataFromString,
  context,
  propagation,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { sql } from 'drizzle-orm';
import {
  cancel,
  createQueue,
  createWorker,
  defineJob,
  drain,
  fail,
  fixedBackoff,
  handle,
  handleBatch,
  NonRetryableError,
  runNext,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import { type OtelOptions, otel } from 'drizzle-queue/opentelemetry';
import { queueJobs } from 'drizzle-queue/schema';
import { beforeEach, describe, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { parentIdOf, useTracing } from './sdk.ts';

const SECRET = 's3cr3t';

const database = useTestDatabase();
const { spans, named, ended } = useTracing();
const queue = createQueue({ around: otel() });
const work = defineJob('work', {
  payload: unvalidated<string>(),
  queue: 'mail',
  maxAttempts: 3,
  backoff: fixedBackoff(0),
});
const deadlineMs = 30_000;

beforeEach(() => clearTables(database.client));

const request = <T>(run: () => Promise<T>): Promise<T> =>
  trace.getTracer('app').startActiveSpan('request', async (span) => {
    try {
      return await run();
    } finally {
      span.end();
    }
  });

const metadataOf = async () => {
  const rows = await database.db.select().from(queueJobs).orderBy(queueJobs.id);
  return rows.map(({ metadata }) => metadata);
};

describe('an enqueue', () => {
  test('is a span in the trace of its request, and its job carries that', async () => {
    const { id } = await request(() => queue.enqueue(database.db, work, 'a', { metadata: { tenant: 7 } }));
    const [send] = named('send work');
    const [parent] = named('request');
    expect(send).toMatchObject({
      kind: SpanKind.PRODUCER,
      status: { code: SpanStatusCode.UNSET },
      attributes: {
        'messaging.system': 'drizzle_queue',
        'messaging.operation.name': 'send',
        'messaging.operation.type': 'send',
        'messaging.destination.name': 'mail',
        'messaging.message.id': String(id),
        'drizzle_queue.job.kind': 'work',
      },
    });
    expect(parentIdOf(send)).toBe(parent?.spanContext().spanId);
    const { traceId, spanId } = send?.spanContext() ?? {};
    expect(await metadataOf()).toEqual([{ tenant: 7, traceparent: `00-${traceId}-${spanId}-01` }]);
  });

  test('of many is one span', async () => {
    await queue.enqueue(database.db, work, 'x', { uniqueKey: 'k' });
    await queue.enqueueMany(database.db, work, [
      { payload: 'a' },
      { payload: 'b', queue: 'other' },
      { payload: 'c', uniqueKey: 'k' },
    ]);
    const [, many] = named('send work');
    expect(many?.attributes).toMatchObject({
      'messaging.batch.message_count': 3,
      'drizzle_queue.duplicates': 1,
    });
    expect(many?.attributes).not.toHaveProperty('messaging.destination.name');
    expect(many?.attributes).not.toHaveProperty('messaging.message.id');
    const carried = new Set((await metadataOf()).map(({ traceparent }) => traceparent));
    expect(carried.size).toBe(2);
  });

  test('from a select, or as a query, carries it too', async () => {
    const select = database.db.select({ n: sql<number>`n`.as('n') }).from(sql`generate_series(1, 3) n`);
    const numbered = defineJob('numbered', { payload: unvalidated<{ n: number }>() });
    await queue.enqueueFrom(database.db, numbered, select);
    await queue.enqueueQuery(database.db, numbered, { n: 4 });
    const [from, query] = named('send numbered');
    const [a, b, c, d] = (await metadataOf()).map(({ traceparent }) => String(traceparent));
    expect(new Set([a, b, c]).size).toBe(1);
    expect(a).toContain(from?.spanContext().spanId);
    expect(d).toContain(query?.spanContext().spanId);
  });

  test('that fails is a failed span, without the parameters of its statement', async () => {
    await database.db
      .transaction(async (tx) => {
        await tx.execute(sql`alter table queue_jobs add constraint never check (queue <> 'mail')`);
        await queue.enqueue(tx, work, SECRET);
      })
      .catch(() => undefined);
    const [send] = named('send work');
    expect(send).toMatchObject({
      status: { code: SpanStatusCode.ERROR, message: expect.stringContaining('violates check constraint') },
      events: [{ name: 'exception' }],
    });
    expect(send?.attributes['error.type']).toBe('PostgresError');
    expect(inspect(spans(), { depth: 6 })).not.toContain(SECRET);
  });

  test('carries nothing without `propagate`, and baggage only where it is asked for', async () => {
    const baggage = propagation.createBaggage({ tenant: { value: 'a, b=ü;' } });
    const enqueue = (options: OtelOptions) =>
      context.with(propagation.setBaggage(context.active(), baggage), () =>
        createQueue({ around: otel(options) }).enqueue(database.db, work, 'x'),
      );
    await enqueue({ propagate: false });
    await enqueue({});
    await enqueue({ baggage: true });
    const [none, some, all] = await metadataOf();
    expect(none).toEqual({});
    expect(Object.keys(some ?? {})).toEqual(['traceparent']);
    expect(all).toMatchObject({ traceparent: expect.any(String), baggage: 'tenant=a%2C%20b%3D%C3%BC%3B' });
    let seen: unknown;
    const reading = handle(work, () => {
      seen = propagation.getActiveBaggage()?.getEntry('tenant')?.value ?? seen;
    });
    await drain(database.db, {
      queue: createQueue({ around: otel({ baggage: true }) }),
      handlers: [reading],
      deadlineMs,
    });
    expect(seen).toBe('a, b=ü;');
  });

  test('leaves out baggage that cannot be passed on, such as a text that was cut in an emoji', async () => {
    const baggage = propagation.createBaggage({
      cut: { value: '😀'.slice(0, 1) },
      ['😀'.slice(0, 1)]: { value: 'cut' },
      noted: { value: '1', metadata: baggageEntryMetadataFromString('😀'.slice(0, 1)) },
      tenant: { value: 'acme', metadata: baggageEntryMetadataFromString('ttl=1') },
    });
    await context.with(propagation.setBaggage(context.active(), baggage), () =>
      createQueue({ around: otel({ baggage: true }) }).enqueue(database.db, work, 'x'),
    );
    expect(await metadataOf()).toMatchObject([{ baggage: 'noted=1,tenant=acme;ttl=1' }]);
  });
});

describe('an attempt', () => {
  test('begins a trace of its own, linked to its enqueue, whatever has started the worker', async () => {
    const { id } = await request(() => queue.enqueue(database.db, work, 'a'));
    const inner: unknown[] = [];
    const worker = createWorker(database.db, {
      queue,
      log: false,
      handlers: [
        handle(work, () => {
          inner.push(trace.getActiveSpan()?.spanContext().spanId);
          trace.getTracer('app').startSpan('inner').end();
        }),
      ],
    });
    await request(() => worker.start());
    const process = await ended('process work');
    await worker.stop();
    const [send] = named('send work');
    expect(process).toMatchObject({
      kind: SpanKind.CONSUMER,
      attributes: {
        'messaging.system': 'drizzle_queue',
        'messaging.operation.name': 'process',
        'messaging.operation.type': 'process',
        'messaging.destination.name': 'mail',
        'messaging.message.id': String(id),
        'drizzle_queue.job.kind': 'work',
        'drizzle_queue.job.attempt': 1,
        'drizzle_queue.job.max_attempts': 3,
        'drizzle_queue.job.wait_ms': expect.any(Number),
        'drizzle_queue.job.outcome': 'completed',
      },
    });
    expect(parentIdOf(process)).toBeUndefined();
    expect(process.links).toMatchObject([
      { context: { spanId: send?.spanContext().spanId, isRemote: true } },
    ]);
    expect(process.spanContext().traceId).not.toBe(send?.spanContext().traceId);
    expect(inner).toEqual([process.spanContext().spanId]);
    expect(parentIdOf(named('inner')[0])).toBe(process.spanContext().spanId);
  });

  test('continues the trace with `parent`', async () => {
    const continuing = createQueue({ around: otel({ parent: 'parent' }) });
    await request(() => continuing.enqueue(database.db, work, 'a'));
    await createQueue().enqueue(database.db, work, 'b');
    await drain(database.db, { queue: continuing, handlers: [handle(work, () => {})], deadlineMs });
    const [send] = named('send work');
    const [first, second] = named('process work').toSorted(
      (a, b) => Number(a.attributes['messaging.message.id']) - Number(b.attributes['messaging.message.id']),
    );
    expect(parentIdOf(first)).toBe(send?.spanContext().spanId);
    expect(first?.spanContext().traceId).toBe(send?.spanContext().traceId);
    expect(first?.links).toEqual([]);
    // Enqueued without a trace.
    expect(parentIdOf(second)).toBeUndefined();
  });

  test('links each retry, and a redriven job, to the enqueue', async () => {
    const { id } = await queue.enqueue(database.db, work, 'a', { maxAttempts: 2 });
    const throws = handle(work, () => {
      throw new TypeError('no');
    });
    await drain(database.db, { queue, handlers: [throws], deadlineMs, log: false });
    await queue.redrive(database.db, id);
    await drain(database.db, { queue, handlers: [handle(work, () => {})], deadlineMs });
    const sender = named('send work')[0]?.spanContext().spanId;
    const processed = named('process work');
    expect(processed).toHaveLength(3);
    for (const { links } of processed) expect(links).toMatchObject([{ context: { spanId: sender } }]);
    expect(new Set(processed.map((span) => span.spanContext().traceId)).size).toBe(3);
    expect(processed[0]).toMatchObject({
      status: { code: SpanStatusCode.ERROR, message: 'no' },
      attributes: { 'error.type': 'TypeError', 'drizzle_queue.job.outcome': 'failed' },
      events: [{ name: 'exception', attributes: { 'exception.type': 'TypeError' } }],
    });
    expect(processed[2]?.status.code).toBe(SpanStatusCode.UNSET);
  });

  test('says how its handler ended', async () => {
    for (const payload of ['snooze', 'cancel', 'fail', 'query'])
      await queue.enqueue(database.db, work, payload);
    await drain(database.db, {
      queue,
      log: false,
      handlers: [
        handle(work, async ({ payload, db }) => {
          if (payload === 'snooze') return snooze(3_600_000);
          if (payload === 'cancel') return cancel('no');
          if (payload === 'fail') return fail(new NonRetryableError('no'));
          await db.execute(sql`select ${SECRET}::text from nowhere`).catch((error: unknown) => {
            throw new NonRetryableError('failed', { cause: error });
          });
          return SECRET;
        }),
      ],
      deadlineMs,
    });
    const outcomes = named('process work').map(({ attributes, status }) => [
      attributes['drizzle_queue.job.outcome'],
      status.code === SpanStatusCode.ERROR,
    ]);
    expect(outcomes.sort()).toEqual([
      ['cancelled', false],
      ['failed', true],
      ['failed', true],
      ['snoozed', false],
    ]);
    expect(inspect(spans(), { depth: 6 })).not.toContain(SECRET);
  });

  test('that nobody waits for any more has ended, though its handler hangs', async () => {
    const hanging = defineJob('hanging', { timeoutMs: 50, maxAttempts: 1 });
    await queue.enqueue(database.db, hanging);
    const worker = createWorker(database.db, {
      queue,
      log: false,
      handlers: [handle(hanging, () => new Promise(() => {}))],
      shutdownTimeoutMs: 0,
    });
    await worker.start();
    const process = await ended('process hanging');
    await worker.stop();
    expect(process).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'JobTimeoutError', 'drizzle_queue.job.outcome': 'failed' },
    });
  });

  test.each(['a cancel', 'the deadline'])('nor does it after %s, once the attempt is over', async (told) => {
    const name = told === 'a cancel' ? 'told' : 'late';
    // Long enough to begin on a busy machine.
    const times = name === 'late' ? { deadlineMs: 2_000, timeoutMs: 3_000 } : { timeoutMs: 800 };
    const hanging = defineJob(name, { ...times, maxAttempts: 1 });
    const began: AbortSignal[] = [];
    const worker = createWorker(database.db, {
      queue,
      log: false,
      handlers: [
        handle(hanging, ({ signal }) => {
          began.push(signal);
          return new Promise(() => {});
        }),
      ],
      shutdownTimeoutMs: 0,
    });
    await worker.start();
    const { id } = await queue.enqueue(database.db, hanging);
    await until(() => began.length > 0);
    if (name === 'told') await queue.cancel(database.db, id, { reason: 'enough' });
    const process = await ended(`process ${name}`);
    await worker.stop();
    expect(began[0]?.aborted).toBe(true);
    expect(process.attributes).toMatchObject({ 'drizzle_queue.job.outcome': 'failed' });
  });

  test('of a batch ends once all of its attempts are over', async () => {
    const hanging = defineJob('hanging-batch', { timeoutMs: 800, maxAttempts: 1 });
    const jobs = await queue.enqueueMany(database.db, hanging, [{}, {}]);
    let size = 0;
    const worker = createWorker(database.db, {
      queue,
      log: false,
      handlers: [
        handleBatch(hanging, { maxSize: 2, maxWaitMs: 1_000 }, (jobs) => {
          size = jobs.length;
          return new Promise(() => {});
        }),
      ],
      shutdownTimeoutMs: 0,
    });
    await worker.start();
    await until(() => size === 2);
    for (const { id } of jobs) await queue.cancel(database.db, id, { reason: 'enough' });
    const process = await ended('process hanging-batch');
    await worker.stop();
    expect(process.status.code).toBe(SpanStatusCode.ERROR);
  });

  test('whose job passes its deadline ends with its handler, as that does', async () => {
    // Long enough to begin on a busy machine.
    const late = defineJob('late', { deadlineMs: 2_000 });
    const { id } = await queue.enqueue(database.db, late);
    const worker = createWorker(database.db, {
      queue,
      log: false,
      handlers: [
        handle(late, async ({ signal }) => {
          await until(() => signal.aborted);
          return 'done all the same';
        }),
      ],
    });
    await worker.start();
    await until(async () => (await queue.find(database.db, id))?.state === 'completed');
    const process = await ended('process late');
    await worker.stop();
    expect(process.attributes).toMatchObject({ 'drizzle_queue.job.outcome': 'completed' });
  });

  test('that a stop interrupts is told apart, hanging or not', async () => {
    const hanging = defineJob('hanging');
    const heeding = defineJob('heeding');
    await queue.enqueue(database.db, hanging);
    await queue.enqueue(database.db, heeding);
    let running = 0;
    const worker = createWorker(database.db, {
      queue,
      log: false,
      handlers: [
        handle(hanging, () => {
          running++;
          return new Promise(() => {});
        }),
        handle(heeding, ({ signal }) => {
          running++;
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        }),
      ],
      shutdownTimeoutMs: 0,
    });
    await worker.start();
    await until(() => running === 2);
    await worker.stop();
    for (const name of ['process hanging', 'process heeding']) {
      expect((await ended(name)).attributes['drizzle_queue.job.outcome']).toBe('interrupted');
    }
  });

  test('is traced in runNext as well', async () => {
    await queue.enqueue(database.db, work, 'a');
    await runNext(database.db, { queue, handlers: [handle(work, () => {})] });
    expect(named('process work')).toHaveLength(1);
  });

  test.each(['link', 'parent'] as const)(
    'of a batch is one span with links to all enqueues, each once (%s)',
    async (parent) => {
      await queue.enqueueMany(database.db, work, [{ payload: 'a' }, { payload: 'b' }]);
      await queue.enqueue(database.db, work, 'c');
      await createQueue().enqueue(database.db, work, 'd');
      await drain(database.db, {
        queue: createQueue({ around: otel({ parent }) }),
        log: false,
        handlers: [
          handleBatch(work, { maxSize: 10 }, (jobs) =>
            jobs.map(({ payload }) =>
              payload === 'a' ? snooze(3_600_000) : fail(new NonRetryableError('never')),
            ),
          ),
        ],
        deadlineMs,
      });
      const senders = named('send work').map((span) => span.spanContext().spanId);
      const [batch, ...others] = named('process work');
      expect(others).toEqual([]);
      expect(batch?.attributes).toMatchObject({
        'messaging.batch.message_count': 4,
        'drizzle_queue.batch.failed': 3,
      });
      expect(batch?.links.map(({ context }) => context.spanId).sort()).toEqual(senders.toSorted());
      expect(batch && parentIdOf(batch)).toBeUndefined();
    },
  );

  test('of a job with a strange traceparent is one without a link', async () => {
    const strange = [
      7,
      null,
      'x',
      '00-0-0-01',
      `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
      `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
    ];
    for (const traceparent of strange) {
      await createQueue().enqueue(database.db, work, 'a', {
        metadata: { traceparent, tracestate: 5, baggage: '%%%,=,;' },
      });
    }
    await drain(database.db, {
      queue: createQueue({ around: otel({ parent: 'parent', baggage: true }) }),
      handlers: [handle(work, () => {})],
      deadlineMs,
    });
    expect(named('process work')).toHaveLength(strange.length);
    for (const span of named('process work')) {
      expect(span.links).toEqual([]);
      expect(parentIdOf(span)).toBeUndefined();
    }
  });
});

test('keeps the state of the trace that it comes from', async () => {
  await createQueue().enqueue(database.db, work, 'a', {
    metadata: { traceparent: `01-${'a'.repeat(32)}-${'b'.repeat(16)}-00-more`, tracestate: 'vendor=1' },
  });
  const continuing = createQueue({ around: otel({ parent: 'link' }) });
  await drain(database.db, { queue: continuing, handlers: [handle(work, () => {})], deadlineMs });
  const [{ context: sender } = { context: undefined }] = named('process work')[0]?.links ?? [];
  expect(sender).toMatchObject({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 0 });
  expect(sender?.traceState?.serialize()).toBe('vendor=1');
});

test('goes together with functions of the app', async () => {
  const tenant = new AsyncLocalStorage<string>();
  const traced = otel();
  const composed = createQueue({
    around: {
      enqueue: (jobs, next) => {
        for (const job of jobs) job.metadata.tenant = tenant.getStore();
        return traced.enqueue(jobs, next);
      },
      run: (attempt, next) =>
        traced.run(attempt, () => tenant.run(String(attempt.job.metadata.tenant), next)),
      runBatch: traced.runBatch,
    },
  });
  await tenant.run('acme', () => composed.enqueue(database.db, work, 'a'));
  let seen: unknown;
  await drain(database.db, {
    queue: composed,
    handlers: [
      handle(work, () => {
        seen = [tenant.getStore(), trace.getActiveSpan() !== undefined];
        return snooze(3_600_000);
      }),
    ],
    deadlineMs,
  });
  expect(seen).toEqual(['acme', true]);
  expect(named('process work')[0]?.attributes['drizzle_queue.job.outcome']).toBe('snoozed');
  expect(await metadataOf()).toEqual([{ tenant: 'acme', traceparent: expect.any(String) }]);
});

test('options that are wrong are refused', () => {
  const make = (options: unknown) => () => otel(options as OtelOptions);
  expect(make({ parent: 'root' })).toThrow(/otel: parent must be 'link' or 'parent'; got 'root'/);
  expect(make({ propagate: 'yes' })).toThrow(/otel: propagate must be/);
  expect(make({ baggage: 1 })).toThrow(/otel: baggage must be/);
  expect(make({ tracer: {} })).toThrow(/otel: tracer must be/);
  expect(make({ meter: 5 })).toThrow(/otel: meter must be/);
  expect(make({ propagte: true })).toThrow(/did you mean propagate\?/);
});
