import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import { otel, otelSteps } from 'drizzle-queue/opentelemetry';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addWorkflowTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { parentIdOf, useTracing } from './sdk.ts';

const database = useTestDatabase();
const { spans, named, ended } = useTracing();
const queue = createQueue({
  around: otel(),
  workflows: workflowsIn(workflowTables, { observe: otelSteps() }),
});
const { handle } = handlersFor<typeof database.db, typeof queue>();
const fulfil = defineJob('fulfil', {
  payload: unvalidated<number>(),
  output: unvalidated<unknown>(),
  queue: 'orders',
  backoff: fixedBackoff(0),
});
const approval = defineSignal('approval', unvalidated<{ readonly by: string }>());

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(database.client, 'queue_steps', 'queue_mailboxes');
});

type Run = Parameters<typeof handle<typeof fulfil>>[1];

async function run(handler: Run, of: typeof queue = queue): Promise<void> {
  await drain(database.db, {
    queue: of,
    handlers: [handle(fulfil, handler)],
    deadlineMs: 20_000,
    log: false,
  });
}

const attributesOf = (name: string) => named(name).map(({ attributes }) => attributes);
const outcomesOf = (name: string) =>
  attributesOf(name).map((attributes) => attributes['drizzle_queue.step.outcome']);

describe('a step', () => {
  test('is a span in that of its attempt, and what it does is in the span', async () => {
    const { id } = await queue.enqueue(database.db, fulfil, 1);
    await run(async ({ step }) => {
      await trace.getTracer('app').startActiveSpan('part', async (part) => {
        await step.run('charge', () => trace.getTracer('app').startSpan('call').end());
        part.end();
      });
      await step.transaction('reserve', async () => undefined);
    });
    const [process] = named('process fulfil');
    const [charge] = named('step charge');
    const [reserve] = named('step reserve');
    expect(charge).toMatchObject({
      kind: SpanKind.INTERNAL,
      status: { code: SpanStatusCode.UNSET },
      attributes: {
        'messaging.system': 'drizzle_queue',
        'messaging.destination.name': 'orders',
        'messaging.message.id': String(id),
        'drizzle_queue.job.kind': 'fulfil',
        'drizzle_queue.step.name': 'charge',
        'drizzle_queue.step.kind': 'run',
        'drizzle_queue.step.attempt': 1,
        'drizzle_queue.step.outcome': 'done',
      },
    });
    expect(parentIdOf(charge)).toBe(named('part')[0]?.spanContext().spanId);
    expect(parentIdOf(named('call')[0])).toBe(charge?.spanContext().spanId);
    expect(parentIdOf(reserve)).toBe(process?.spanContext().spanId);
    expect(reserve?.attributes['drizzle_queue.step.kind']).toBe('transaction');
    expect(
      new Set(
        spans()
          .filter(({ name }) => name !== 'send fulfil')
          .map((span) => span.spanContext().traceId),
      ).size,
    ).toBe(1);
  });

  test('that fails is a failed span with its try, and one that is replayed has none', async () => {
    await queue.enqueue(database.db, fulfil, 1);
    await run(async ({ step, job }) => {
      await step.run('charge', () => 1);
      await step.run('ship', { attempts: 3 }, () => {
        if (job.errors.length < 1) throw new TypeError('no parcels');
      });
    });
    expect(named('process fulfil')).toHaveLength(2);
    expect(outcomesOf('step charge')).toEqual(['done']);
    expect(outcomesOf('step ship')).toEqual(['failed', 'done']);
    expect(attributesOf('step ship').map((each) => each['drizzle_queue.step.attempt'])).toEqual([1, 2]);
    expect(named('step ship')[0]).toMatchObject({
      status: { code: SpanStatusCode.ERROR, message: 'no parcels' },
      attributes: { 'error.type': 'TypeError' },
    });
  });

  test('has a span whose name has no keys, and an attribute with the whole name', async () => {
    await queue.enqueue(database.db, fulfil, 1);
    await run(async ({ step }) => {
      for (const turn of [1, 22]) await step.run(`turn-${turn}`, () => turn);
    });
    expect(attributesOf('step turn-#').map((each) => each['drizzle_queue.step.name'])).toEqual([
      'turn-1',
      'turn-22',
    ]);
  });

  test.each([
    ['turn-2-charge', 'turn-#-charge'],
    ['2nd try', '#nd try'],
    ['send f47ac10b-58cc-4372-a567-0e02b2c3d479 again', 'send # again'],
    ['order:a1b2c3d4', 'order:#'],
    ['pay pi_3MtwBwLkdIwHu7ix28a3tqPa', 'pay pi_#'],
    ['ship 01HZXK6J2V8Q4T9W3R5Y7B1N0M', 'ship #'],
    ['decade reservation', 'decade reservation'],
  ])('%s: its span is of %s', async (name, expected) => {
    await queue.enqueue(database.db, fulfil, 1);
    await run(async ({ step }) => void (await step.run(name, () => 1)));
    expect(attributesOf(`step ${expected}`).map((each) => each['drizzle_queue.step.name'])).toEqual([name]);
  });

  test('that is open ends with its record, and one that is never recorded has no span', async () => {
    await queue.enqueue(database.db, fulfil, 1);
    await run(async ({ step }) => {
      const open = await step.begin<number>('open');
      expect(named('step open')).toEqual([]);
      await open.record(1);
      await step.begin('nothing');
    });
    expect(outcomesOf('step open')).toEqual(['done']);
    expect(named('step nothing')).toEqual([]);
  });

  test('that hangs after a cancel has ended once its attempt is over', async () => {
    const hanging = defineJob('told', { timeoutMs: 800, maxAttempts: 1 });
    const { id } = await queue.enqueue(database.db, hanging);
    let began = 0;
    const worker = createWorker(database.db, {
      queue,
      log: false,
      handlers: [
        handle(hanging, ({ step }) =>
          step.run('hang', () => {
            began++;
            return new Promise<void>(() => {});
          }),
        ),
      ],
      shutdownTimeoutMs: 0,
    });
    await worker.start();
    await until(() => began > 0);
    await queue.cancel(database.db, id, { reason: 'enough' });
    const hang = await ended('step hang');
    await worker.stop();
    expect(hang).toMatchObject({ attributes: { 'drizzle_queue.step.outcome': 'failed' } });
  });

  test('that hangs has ended once its attempt is over', async () => {
    const hanging = defineJob('hanging', { timeoutMs: 200, maxAttempts: 1 });
    await queue.enqueue(database.db, hanging);
    const worker = createWorker(database.db, {
      queue,
      log: false,
      handlers: [handle(hanging, ({ step }) => step.run('hang', () => new Promise<void>(() => {})))],
      shutdownTimeoutMs: 0,
    });
    await worker.start();
    const hang = await ended('step hang');
    await worker.stop();
    expect(hang).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'JobTimeoutError', 'drizzle_queue.step.outcome': 'failed' },
    });
  });
});

describe('a wait', () => {
  test('ends its span and that of its attempt, and the next attempt links to it', async () => {
    const { id } = await queue.enqueue(database.db, fulfil, 1);
    const handler: Run = async ({ step }) => {
      await step.run('charge', () => 1);
      return (await step.waitForSignal(approval)).by;
    };
    await run(handler);
    const [first] = named('process fulfil');
    const [wait] = named('step approval');
    expect(first?.attributes['drizzle_queue.job.outcome']).toBe('waiting');
    expect(first?.status.code).toBe(SpanStatusCode.UNSET);
    expect(wait?.attributes).toMatchObject({
      'drizzle_queue.step.kind': 'signal',
      'drizzle_queue.step.outcome': 'waiting',
    });
    expect(parentIdOf(wait)).toBe(first?.spanContext().spanId);

    await queue.workflows.signal(database.db, { id }, approval, { by: 'Ada' });
    await run(handler);
    const [, second] = named('process fulfil');
    expect(second?.attributes['drizzle_queue.job.outcome']).toBe('completed');
    const [send] = named('send fulfil');
    expect(second?.links.map(({ context }) => context.spanId)).toEqual([
      send?.spanContext().spanId,
      wait?.spanContext().spanId,
    ]);
    expect(second?.links[1]?.context.traceId).toBe(first?.spanContext().traceId);
    expect(second?.spanContext().traceId).not.toBe(first?.spanContext().traceId);
    expect(outcomesOf('step approval')).toEqual(['waiting', 'done']);
    expect(outcomesOf('step charge')).toEqual(['done']);
  });

  test('that times out, and a sleep that is over', async () => {
    await queue.enqueue(database.db, fulfil, 1);
    const handler: Run = async ({ step }) => {
      await step.sleep('cool down', 86_400_000);
      return (await step.waitForSignal(approval, { timeoutMs: 86_400_000 })) === undefined;
    };
    for (let run_ = 0; run_ < 3; run_++) {
      await run(handler);
      await database.client`update queue_steps set until = until - interval '1 day'`;
      await database.client`update queue_jobs set run_at = run_at - interval '1 day'`;
    }
    expect(outcomesOf('step cool down')).toEqual(['waiting']);
    expect(outcomesOf('step approval')).toEqual(['waiting', 'timed-out']);
    const [, second, third] = named('process fulfil');
    const waits = [named('step cool down')[0], named('step approval')[0]];
    expect(second?.links.at(-1)?.context.spanId).toBe(waits[0]?.spanContext().spanId);
    expect(third?.links.at(-1)?.context.spanId).toBe(waits[1]?.spanContext().spanId);
    expect(third?.links).toHaveLength(2);
  });

  test('leaves its trace in its row, and other steps leave none', async () => {
    await queue.enqueue(database.db, fulfil, 1);
    await run(async ({ step }) => {
      await step.run('charge', () => 1);
      await step.sleep('cool down', 86_400_000);
    });
    const { traceId, spanId } = named('step cool down')[0]?.spanContext() ?? {};
    expect(await database.client`select name, trace from queue_steps order by name`).toEqual([
      { name: 'charge', trace: null },
      { name: 'cool down', trace: `00-${traceId}-${spanId}-01` },
    ]);
    expect(await queue.workflows.steps(database.db, 1)).not.toContainEqual(
      expect.objectContaining({ trace: expect.anything() }),
    );
  });

  test('without otelSteps ends the span of its attempt, and leaves nothing', async () => {
    const plain = createQueue({ around: otel(), workflows: workflowsIn(workflowTables) });
    await plain.enqueue(database.db, fulfil, 1);
    const handler: Run = async ({ step }) => await step.sleep('cool down', 86_400_000);
    await run(handler, plain);
    expect(named('process fulfil')[0]?.attributes['drizzle_queue.job.outcome']).toBe('waiting');
    expect(spans().filter(({ name }) => name.startsWith('step'))).toEqual([]);
    expect(await database.client`select trace from queue_steps`).toEqual([{ trace: null }]);
  });
});

test('options that are wrong are refused', () => {
  expect(() => otelSteps({ tracer: {} as never })).toThrow(/otelSteps: tracer must be/);
  expect(() => otelSteps({ meter: 1 } as never)).toThrow(/otelSteps: meter must be/);
  expect(() => otelSteps({ spans: 1 } as never)).toThrow(/otelSteps: options|unknown option 'spans'/);
  expect(() => workflowsIn(workflowTables, { observe: {} as never })).toThrow(
    /workflowsIn: observe must have begin\(\) and resume\(\)/,
  );
});
