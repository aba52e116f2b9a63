import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import {
  createQueue,
  defineJob,
  defineSchedule,
  drain,
  handle,
  schedulesIn,
  unvalidated,
} from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import type { Behaviour } from './behaviour.ts';

const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
const tick = defineJob('tick', { payload: unvalidated<{ scope: string }>(), queue: 'ticks' });
const HOUR_MS = 3_600_000;

export const scheduling: readonly Behaviour[] = [
  {
    name: 'a schedule is set and listed, and each of its ticks fires once in two workers',
    async run({ db }) {
      const startsAt = new Date(Date.now() + 300);
      const once = defineSchedule('behaves', {
        job: tick,
        payload: { scope: 'all' },
        every: HOUR_MS,
        startsAt,
        options: { metadata: { tenant: 'acme' } },
      });
      const nightly = { job: tick, payload: { scope: 'all' }, cron: '0 3 * * *', timeZone: 'Europe/Vienna' };
      const set = await queue.schedules.set(db, once);
      assert.deepEqual(set.nextAt, startsAt);
      await queue.schedules.set(db, defineSchedule('nightly', nightly));
      const { schedules } = await queue.schedules.list(db, { job: tick });
      assert.deepEqual(
        schedules.map(({ name, cron, every }) => [name, cron, every]),
        [
          ['behaves', null, HOUR_MS],
          ['nightly', '0 3 * * *', null],
        ],
      );
      // The database's clock decides, which may be another one.
      await delay(500);
      const seen: unknown[] = [];
      const handlers = [handle(tick, ({ job, payload }) => void seen.push([payload.scope, job.metadata]))];
      const options = { queue, handlers, deadlineMs: 30_000 };
      await Promise.all([drain(db, options), drain(db, options)]);
      await drain(db, options);
      const metadata = { tenant: 'acme', schedule: 'behaves', tick: startsAt.toISOString() };
      assert.deepEqual(seen, [['all', metadata]]);
      const fired = await queue.schedules.find(db, 'behaves');
      assert.deepEqual([fired?.lastAt, fired?.nextAt], [startsAt, new Date(startsAt.getTime() + HOUR_MS)]);
      assert.equal((await queue.schedules.runNow(db, 'nightly')).duplicate, false);
      assert.equal((await drain(db, options)).completed, 1);
      for (const name of ['behaves', 'nightly']) assert.equal(await queue.schedules.remove(db, name), true);
    },
  },
];
