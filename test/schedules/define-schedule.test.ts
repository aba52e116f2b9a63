import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, defineSchedule, handle, schedulesIn } from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { expect, test } from 'vitest';
import { z } from 'zod';

const report = defineJob('report', { payload: z.object({ day: z.string() }) });
const plain = defineJob('plain');

/** Options as a caller without TypeScript may give them. */
const define = (options: object, name = 'nightly') =>
  defineSchedule(name, { job: plain, cron: '0 3 * * *', ...options } as never);

test('has these defaults', () => {
  expect(defineSchedule('nightly', { job: report, payload: { day: 'monday' }, cron: '0 3 * * *' })).toEqual({
    name: 'nightly',
    job: report,
    payload: { day: 'monday' },
    cron: '0 3 * * *',
    every: undefined,
    timeZone: 'UTC',
    catchUp: 'latest',
    overlap: true,
    startsAt: undefined,
    endsAt: undefined,
    options: {},
  });
});

test.each([
  [{ cron: '0 3 * *' }, "defineSchedule('nightly'): cron must have five fields"],
  [{ cron: '0 3 * * * * *' }, 'must have five fields'],
  [{ cron: '60 3 * * *' }, "cron: the minute '60' must be a list of *, numbers from 0 to 59"],
  [{ cron: '0 24 * * *' }, "cron: the hour '24' must be"],
  [{ cron: '0 3 0 * *' }, "cron: the day of month '0' must be"],
  [{ cron: '0 3 L * *' }, "cron: the day of month 'L' must be"],
  [{ cron: '0 3 15W * *' }, "cron: the day of month '15W' must be"],
  [{ cron: '0 3 * 13 *' }, "cron: the month '13' must be a list of *, numbers from 1 to 12, or jan to dec"],
  [{ cron: '0 3 * jann *' }, "cron: the month 'jann' must be"],
  [{ cron: '0 3 * * 5#2' }, "cron: the day of week '5#2' must be"],
  [{ cron: '0 3 * * 8' }, "cron: the day of week '8' must be"],
  [{ cron: '0 3 * * fri-mon' }, "cron: the day of week 'fri-mon' must be"],
  [{ cron: '61 0 3 * * *' }, "cron: the second '61' must be"],
  [{ cron: '*/0 3 * * *' }, "cron: the minute '*/0' must be"],
  [{ cron: '*/60 3 * * *' }, "cron: the minute '*/60' must be"],
  [{ cron: '5/10 3 * * *' }, "cron: the minute '5/10' must be"],
  [{ cron: '*-5 3 * * *' }, "cron: the minute '*-5' must be"],
  [{ cron: '1,,2 3 * * *' }, "cron: the minute '1,,2' must be"],
  [{ cron: '0 ? * * *' }, "cron: the hour '?' must be"],
  [{ cron: '@daily' }, 'must have five fields'],
  [{ cron: '' }, 'must have five fields'],
  [{ cron: 3 }, 'must be a cron expression'],
  [{ cron: `${'1,'.repeat(600)}1 3 * * *` }, 'must be a cron expression'],
  [{ cron: '0 0 30 2 *' }, "cron never fires: its day of month '30' does not exist in its month '2'"],
  [{ cron: '0 0 31 4,6,9,11 *' }, 'never fires'],
  [{ cron: undefined }, 'cron or every must be given, and not both'],
  [{ every: 60_000 }, 'cron or every must be given, and not both'],
  [{ cron: undefined, every: -1 }, 'every must be a number of milliseconds from 1000'],
  [{ cron: undefined, every: 999 }, 'every must be a number of milliseconds from 1000'],
  [{ cron: undefined, every: Number.NaN }, 'every must be a number'],
  [
    { timeZone: 'Mars/Olympus' },
    "timeZone must be a time zone that this runtime knows, such as 'Europe/Vienna'",
  ],
  [{ timeZone: 3 }, 'timeZone must be a time zone'],
  [
    { cron: undefined, every: 60_000, timeZone: 'UTC' },
    'timeZone only applies to cron: an interval is the same',
  ],
  [{ catchUp: 'never' }, 'catchUp must be one of latest, all, none'],
  [{ overlap: 'no' }, 'overlap must be true or false'],
  [{ startsAt: new Date('no') }, 'startsAt must be a valid Date'],
  [{ endsAt: '2026-01-01' }, 'endsAt must be a valid Date'],
  [{ startsAt: new Date(1_000), endsAt: new Date(0) }, 'endsAt is before the first tick after startsAt'],
  [{ job: 'plain' }, 'takes a job definition'],
  [{ payload: 3 }, 'its definition has no payload'],
  [{ job: report, payload: {} }, "The payload of 'report' is invalid: day"],
  [{ options: { priority: 10 } }, 'priority must be'],
  [{ options: { queue: '' } }, 'queue must be'],
  [{ options: { uniqueKey: 'a' } }, 'options cannot have uniqueKey'],
  [{ options: { delayMs: 1_000 } }, 'options cannot have delayMs'],
  [{ options: { runAt: new Date() } }, 'options cannot have runAt'],
  [{ options: { awaited: true } }, 'options cannot have awaited'],
  [{ options: { throttle: { key: 'a', perMs: 1_000 } } }, 'options cannot have throttle'],
])('refuses %o', (options, message) => {
  expect(() => define(options)).toThrow(message);
});

test('refuses a name that cannot be one', () => {
  expect(() => define({}, '')).toThrow('defineSchedule: name must be a string');
  expect(() => define({}, 'x'.repeat(201))).toThrow('at most 200 bytes');
});

test('takes all that cron means', () => {
  for (const cron of [
    '* * * * *',
    '*/5 0-23/2 1,15 jan-jun,12 mon-fri',
    '0 0 * * 7',
    '59 59 23 31 12 sat',
    '0 0 29 2 *',
  ]) {
    expect(define({ cron }).cron).toBe(cron);
  }
});

test('a worker refuses schedules that its queue has no table for, and two of one name', () => {
  const db = drizzle.mock();
  const handlers = [handle(plain, () => undefined)];
  const schedules = [define({})];
  expect(() => createWorker(db, { queue: createQueue(), handlers, schedules })).toThrow(
    'createWorker: its queue has no schedules. Write createQueue({ schedules: schedulesIn(queueSchedules) })',
  );
  const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
  expect(() => createWorker(db, { queue, handlers, schedules: [...schedules, ...schedules] })).toThrow(
    "schedules has 'nightly' twice",
  );
  expect(() => createWorker(db, { queue, handlers, schedules: 'nightly' as never })).toThrow(
    'must be an array',
  );
  expect(() => schedulesIn({} as never)).toThrow('schedulesIn takes the table queueSchedules');
  expect(() => createQueue({ schedules: queueSchedules as never })).toThrow(
    'createQueue: schedules must be schedulesIn(…), got',
  );
});
