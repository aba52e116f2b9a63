import { text } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSchedule,
  handle,
  type ScheduleRecord,
  type Schedules,
  schedulesIn,
} from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { postgresJs as db } from './databases.ts';

const report = defineJob('report', { payload: z.object({ day: z.string() }) });
const plain = defineJob('plain');

test('a schedule is typed by the payload of its job', () => {
  defineSchedule('a', { job: report, payload: { day: 'monday' }, cron: '0 3 * * *' });
  defineSchedule('a', { job: plain, every: 60_000 });
  // @ts-expect-error the payload is missing
  defineSchedule('a', { job: report, cron: '0 3 * * *' });
  // @ts-expect-error it is another
  defineSchedule('a', { job: report, payload: { day: 3 }, cron: '0 3 * * *' });
  // @ts-expect-error the job has none
  defineSchedule('a', { job: plain, payload: { day: 'monday' }, cron: '0 3 * * *' });
});

test('its timing is one of two', () => {
  // @ts-expect-error neither
  defineSchedule('a', { job: plain });
  // @ts-expect-error both
  defineSchedule('a', { job: plain, cron: '* * * * *', every: 1_000 });
  // @ts-expect-error an interval has no zone
  defineSchedule('a', { job: plain, every: 1_000, timeZone: 'Europe/Vienna' });
  // @ts-expect-error no such way to catch up
  defineSchedule('a', { job: plain, every: 1_000, catchUp: 'some' });
});

test('only a queue that was given the table has schedules', () => {
  const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
  expectTypeOf(queue.schedules).toExtend<Schedules>();
  expectTypeOf(queue.schedules.set).returns.toEqualTypeOf<Promise<ScheduleRecord>>();
  // @ts-expect-error it was given none
  createQueue().schedules.list(db);
  // A queue with schedules may stand in the place of one without.
  expectTypeOf(queue).toExtend<ReturnType<typeof createQueue>>();
});

test('the columns of the app are among its options, required as in an insert', () => {
  const tables = createQueueTables({ columns: { tenantId: text('tenant_id').notNull() } });
  const queue = createQueue({ tables, schedules: schedulesIn(queueSchedules) });
  const given = defineSchedule('a', { job: plain, every: 1_000, options: { tenantId: 'acme', priority: 1 } });
  const missing = defineSchedule('a', { job: plain, every: 1_000 });
  const handlers = [handle(plain, () => undefined)];
  queue.schedules.set(db, given);
  createWorker(db, { queue, handlers, schedules: [given] });
  // @ts-expect-error tenantId is required
  queue.schedules.set(db, missing);
  // @ts-expect-error tenantId is required
  createWorker(db, { queue, handlers, schedules: [missing] });
  createQueue({ schedules: schedulesIn(queueSchedules) }).schedules.set(db, missing);
});
