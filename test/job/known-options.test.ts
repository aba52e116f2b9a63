import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  defineSchedule,
  drain,
  exponentialBackoff,
  handle,
  handleBatch,
  limitsIn,
  runNext,
  schedulesIn,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { describe, expect, test } from 'vitest';
import { checkOptions, namesOf } from '../../src/core/job/known-options.ts';
import { untouched } from '../queue/support/executors.ts';

describe('an option that nobody reads', () => {
  const known = namesOf<{ delayMs: 1; runAt: 1; kind: 1; minutes: 1; concurrency: 1 }>({
    delayMs: true,
    runAt: true,
    kind: true,
    minutes: true,
    concurrency: true,
  });
  const also = [{ key: 'tenantId' }];

  test.each([
    ['delay', /did you mean delayMs\?/],
    ['delayms', /did you mean delayMs\?/],
    ['knd', /did you mean kind\?/],
    ['kinds', /did you mean kind\?/],
    ['concurency', /did you mean concurrency\?/],
    ['tenant', /did you mean tenantId\?/],
    ['cron', /; valid options: delayMs, runAt, kind, minutes, concurrency, tenantId$/],
    ['m', /; valid options: /],
    ['', /; valid options: /],
    ['constructor', /; valid options: /],
  ])('%s', (name, message) => {
    const check = () => checkOptions('it', { [name]: undefined }, known, also);
    expect(check).toThrow(TypeError);
    expect(check).toThrow(`it: unknown option '${name}'`);
    expect(check).toThrow(message);
  });

  test('known ones, and those of the app, come back as they are', () => {
    const options = { delayMs: 1, tenantId: 2, runAt: undefined };
    expect(checkOptions('it', options, known, also)).toBe(options);
  });
});

describe('is refused by', () => {
  const db = untouched() as unknown as Database;
  const job = defineJob('index');
  const handlers = [handle(job, () => {})];
  const queue = createQueue({
    limits: limitsIn(control, { exports: { groups: {} } }),
    schedules: schedulesIn(control.queueSchedules),
  });
  const given = <T extends object>(options: T): T => ({ ...options, unheardOf: 1 });

  test.each<[string, () => unknown]>([
    ['createQueue', () => createQueue(given({}))],
    ['its around', () => createQueue({ around: given({}) })],
    ['limitsIn', () => limitsIn(control, { exports: given({}) })],
    ['defineJob', () => defineJob('index', given({}))],
    ['defineSchedule', () => defineSchedule('nightly', given({ job, every: 60_000 }))],
    ['exponentialBackoff', () => exponentialBackoff(given({}))],
    ['handleBatch', () => handleBatch(job, given({}), () => {})],
    ['createWorker', () => createWorker(db, given({ queue, handlers }))],
    ['its queues', () => createWorker(db, { queue, handlers, queues: { index: given({}) } })],
    [
      'their aging',
      () => createWorker(db, { queue, handlers, queues: { index: { aging: given({ afterMs: 1_000 }) } } }),
    ],
    ['drain', () => drain(db, given({ queue, handlers, deadlineMs: 1_000 }))],
    ['runNext', () => runNext(db, given({ queue, handlers }))],
    ['cancel', () => queue.cancel(db, 1, given({}))],
    ['list', () => queue.list(db, given({}))],
    ['redrive', () => queue.redrive(db, given({ kind: 'index' }))],
    ['enqueueQuery', () => queue.enqueueQuery(db as never, job, undefined, given({}))],
    ['schedules.list', () => queue.schedules.list(db, given({}))],
    ['limits.list', () => queue.limits.list(db, given({ queue: 'exports' }))],
    ['limits.groups', () => queue.limits.groups(db, given({ queue: 'exports' }))],
    ['limits.set: its name', () => queue.limits.set(db, given({ queue: 'exports' }), { concurrency: 1 })],
    [
      'limits.set: the limit',
      () => queue.limits.set(db, { queue: 'exports', group: 'a' }, given({ concurrency: 1 })),
    ],
    ['limits.unblock', () => queue.limits.unblock(db, given({ queue: 'exports', group: 'a' }))],
  ])('%s', async (_, call) => {
    await expect((async () => await call())()).rejects.toThrow(
      /: unknown option 'unheardOf'; valid options: /,
    );
  });
});
