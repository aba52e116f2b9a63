import type { Meter, Tracer } from '@opentelemetry/api';
import { drizzle } from 'drizzle-orm/postgres-js';
import {
  type Around,
  createQueue,
  createWorker,
  defineJob,
  handle,
  type Logger,
  logWorker,
  type WorkerHealth,
} from 'drizzle-queue';
import { type Figures, type OtelAround, observe, otel, type Vitals } from 'drizzle-queue/opentelemetry';
import { describe, expectTypeOf, test } from 'vitest';

declare const tracer: Tracer;
declare const meter: Meter;

const job = defineJob('job');
const worker = createWorker(drizzle.mock(), { queue: createQueue(), handlers: [handle(job, () => {})] });

describe('otel', () => {
  test('is an around, each of whose functions can be called from another', () => {
    expectTypeOf(otel()).toEqualTypeOf<OtelAround>();
    expectTypeOf<OtelAround>().toExtend<Around>();
    createQueue({ around: otel({ propagate: false, baggage: true, parent: 'parent', tracer, meter }) });
    const traced = otel();
    createQueue({
      around: { ...traced, run: (attempt, next) => traced.run(attempt, async () => await next()) },
    });
  });

  test('has no other options', () => {
    // @ts-expect-error no such relation
    otel({ parent: 'root' });
    // @ts-expect-error no such option
    otel({ propagator: 'w3c' });
  });
});

describe('observe', () => {
  test('takes a worker, and functions that answer with figures', () => {
    expectTypeOf(observe(worker, { meter })).toEqualTypeOf<() => void>();
    expectTypeOf<{
      readonly queues: readonly {
        readonly queue: string;
        readonly due: number;
        readonly grouped: number;
        readonly running: number;
        readonly scheduled: number;
        readonly waiting: number;
        readonly oldestDueMs: number | undefined;
        readonly workers: number;
      }[];
    }>().toExtend<Figures>();
    expectTypeOf<{
      readonly vitals: readonly {
        readonly code: 'oldest-due' | 'dead-rows';
        readonly severity: 'ok' | 'warning' | 'error' | 'unknown';
        readonly queue: string | undefined;
        readonly kind: string | undefined;
        readonly value: number | undefined;
        readonly message: string;
      }[];
    }>().toExtend<Vitals>();
    // @ts-expect-error figures themselves would never change
    observe(worker, { stats: { queues: [] } });
    // @ts-expect-error a queue's name is missing
    observe(worker, { stats: async () => ({ queues: [{ due: 1, running: 1, scheduled: 1 }] }) });
  });
});

describe('logs and health', () => {
  test('the console is a logger, and so is what pino makes', () => {
    expectTypeOf(console).toExtend<Logger>();
    interface LogFn {
      (object: object, message?: string, ...values: unknown[]): void;
      (message: string, ...values: unknown[]): void;
    }
    expectTypeOf<{
      debug: LogFn;
      info: LogFn;
      warn: LogFn;
      error: LogFn;
      isLevelEnabled(level: string): boolean;
    }>().toExtend<Logger>();
    expectTypeOf(logWorker(worker, console, { level: 'warn' })).toEqualTypeOf<() => void>();
    // @ts-expect-error no such level
    logWorker(worker, console, { level: 'trace' });
    // @ts-expect-error only false is an answer
    createWorker(drizzle.mock(), { queue: createQueue(), handlers: [handle(job, () => {})], log: true });
  });

  test('a worker knows its health at once', () => {
    expectTypeOf(worker.health()).toEqualTypeOf<WorkerHealth>();
    expectTypeOf<WorkerHealth['lastBeatMs']>().toEqualTypeOf<number | undefined>();
  });
});
