import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSchedule,
  handle,
  schedulesIn,
  unvalidated,
} from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { describe, expect, onTestFinished, test } from 'vitest';
import { drivers } from '../queue/support/drivers.ts';
import { controlStatements } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { nextEvent } from '../worker/next-event.ts';

const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
const tick = defineJob('tick', { payload: unvalidated<{ n: number; text: string } | null>() });

describe.each(Object.entries(drivers))('with %s', (_, open) => {
  const database = useTestDatabase();

  test('schedules are set, listed, paused and fired', async () => {
    const { db, close } = await open(database);
    onTestFinished(close);
    for (const statement of await controlStatements()) await db.execute(sql.raw(statement));
    const payload = { n: 1, text: `"'$1 ü` };
    const startsAt = new Date('2026-01-01T00:00Z');
    const odd = defineSchedule(`odd '" $1`, {
      job: tick,
      payload,
      cron: '0 0 1 1 *',
      timeZone: 'Pacific/Chatham',
      overlap: false,
      startsAt,
      options: { metadata: { a: [1, null] } },
    });
    const record = await queue.schedules.set(db, odd);
    expect(record).toMatchObject({ payload, startsAt, overlap: false, every: null, declared: false });
    await queue.schedules.set(db, defineSchedule('b', { job: tick, payload: null, every: 1_000 }));
    expect(await queue.schedules.pause(db, 'b')).toBe(true);
    expect(await queue.schedules.resume(db, 'b')).toBe(true);
    expect(await queue.schedules.find(db, odd.name)).toEqual(record);
    expect((await queue.schedules.list(db)).schedules.map(({ name }) => name)).toEqual(['b', odd.name]);
    const { id, duplicate } = await queue.schedules.runNow(db, odd.name);
    expect([await queue.schedules.runNow(db, odd.name), duplicate]).toEqual([
      { id, duplicate: true, outcome: 'duplicate' },
      false,
    ]);

    const worker = createWorker(db, {
      queue,
      handlers: [handle(tick, () => undefined)],
      schedules: [defineSchedule('declared', { job: tick, payload, every: 1_000 })],
    });
    onTestFinished(() => worker.stop());
    const fired = [
      nextEvent(worker, 'fired', ({ schedule }) => schedule === 'b'),
      nextEvent(worker, 'fired', ({ schedule }) => schedule === 'declared'),
    ];
    const completed = nextEvent(worker, 'completed', ({ job }) => job.metadata.schedule === 'b');
    await worker.start();
    for (const [{ ticks, ids }] of await Promise.all(fired)) {
      expect(ticks).toEqual([expect.any(Date)]);
      expect(ids).toHaveLength(1);
    }
    expect((await completed)[0].job.payload).toBeNull();
    expect(await queue.schedules.remove(db, odd.name)).toBe(true);
  });
});
