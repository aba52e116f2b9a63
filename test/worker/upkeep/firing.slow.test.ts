import { createWorker, defineJob, defineSchedule, handle, InvalidPayloadError } from 'drizzle-queue';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { atFaultPoints } from '../../../src/core/sql/fault-point.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import { startWorkerProcess } from '../worker-process.ts';
import {
  database,
  expectEverySecond,
  jobsOf,
  other,
  queue,
  rowOf,
  secondly,
  tick,
  ticking,
  untilArmed,
  useTicking,
  yearly,
} from './ticking.ts';

useTicking();

describe('overlap: false', () => {
  test('lets ticks pass while a job is live', async () => {
    const alone = secondly('alone', { job: other, overlap: false });
    // Nobody works on its jobs.
    const { worker, fired } = await ticking([alone, secondly('beside')]);
    await until(async () => (await jobsOf('beside')).length >= 4);
    expect(await jobsOf('alone')).toHaveLength(1);
    expect(fired.filter((text) => text.startsWith('alone')).length).toBeGreaterThanOrEqual(3);
    await database.client`delete from queue_jobs where metadata ->> 'schedule' = 'alone'`;
    await until(async () => (await jobsOf('alone')).length === 1);
    await worker.stop();
  });

  test('waits for an open transaction that completes the job, and says nothing of it', async () => {
    const { fired, errors } = await ticking([
      secondly('alone', { job: other, overlap: false }),
      secondly('b'),
    ]);
    await until(async () => (await jobsOf('alone')).length === 1);
    await database.db.transaction(async (tx) => {
      await tx.execute(`delete from queue_jobs where metadata ->> 'schedule' = 'alone'`);
      const before = fired.filter((text) => text.startsWith('alone')).length;
      const others = (await jobsOf('b')).length;
      await until(async () => (await jobsOf('b')).length >= others + 3);
      expect(fired.filter((text) => text.startsWith('alone')).length).toBeLessThanOrEqual(before + 1);
    });
    await until(async () => (await jobsOf('alone')).length === 1);
    expect(errors).toEqual([]);
  });
});

describe('a rolling deploy', () => {
  test('to another payload loses and doubles no tick', async () => {
    const old = await ticking([secondly('a', { options: { metadata: { version: 1 } } })]);
    await until(async () => (await jobsOf('a')).length >= 2);
    const young = await ticking([secondly('a', { options: { metadata: { version: 2 } } })]);
    const seen = (await jobsOf('a')).length;
    await until(async () => (await jobsOf('a')).length >= seen + 2);
    await old.worker.stop();
    const after = (await jobsOf('a')).length;
    await until(async () => (await jobsOf('a')).length >= after + 2);
    await young.worker.stop();
    expectEverySecond(await jobsOf('a'));
    const [last] = await database.client<{ version: number }[]>`
      select metadata -> 'version' as version from queue_results order by job_id desc limit 1`;
    expect(last?.version).toBe(2);
  }, 240_000);

  test('to another timing fires by the new one, whoever fires it', async () => {
    const old = await ticking([secondly('a')]);
    await until(async () => (await jobsOf('a')).length >= 2);
    const young = await ticking([yearly('a')]);
    await until(async () => (await rowOf('a'))?.cron === '0 0 1 1 *');
    await untilArmed('a');
    const fired = await jobsOf('a');
    expectEverySecond(fired);
    const beside = await ticking([secondly('beside')]);
    await until(async () => (await jobsOf('beside')).length >= 2);
    expect(await jobsOf('a')).toEqual(fired);
    expect((await rowOf('a'))?.cron).toBe('0 0 1 1 *');
    for (const { worker, errors } of [old, young, beside]) {
      await worker.stop();
      expect(errors).toEqual([]);
    }
  }, 240_000);

  test('that takes a declaration away: the old workers fire it, the new ones do not', async () => {
    const old = await ticking([secondly('a')]);
    await nextEvent(old.worker, 'fired');
    const young = await ticking([secondly('b')]);
    const seen = (await jobsOf('a')).length;
    await until(async () => (await jobsOf('a')).length >= seen + 1);
    await old.worker.stop();
    const fired = await jobsOf('a');
    const beside = (await jobsOf('b')).length;
    await until(async () => (await jobsOf('b')).length >= beside + 3);
    expect(await jobsOf('a')).toEqual(fired);
    await young.worker.stop();
    // It is there for a rollback within the week, which goes on with what was missed; then it is pruned.
    const back = await ticking([secondly('a')]);
    await nextEvent(back.worker, 'fired');
    expectEverySecond(await jobsOf('a'));
    await back.worker.stop();
    await database.client`update queue_schedules set seen_at = now() - interval '8 days' where name = 'a'`;
    await ticking([secondly('b')]);
    await until(async () => (await rowOf('a')) === undefined);
  }, 240_000);
});

describe('what fails', () => {
  test('a schedule that cannot be fired does not keep the others', async () => {
    await queue.schedules.set(database.db, secondly('unknown-zone'));
    await queue.schedules.set(database.db, yearly('unknown-zone', { timeZone: 'Europe/Vienna' }));
    await queue.schedules.set(database.db, secondly('bad-row'));
    await database.client`update queue_schedules set time_zone = 'Mars/Olympus' where name = 'unknown-zone'`;
    await database.client`
      update queue_schedules set settings = settings || '{"priority": 77}' where name = 'bad-row'`;
    const { errors } = await ticking([secondly('good')]);
    await until(async () => (await jobsOf('good')).length >= 3);
    expect(new Set(errors.map(({ during }) => during))).toEqual(
      new Set(["firing the schedule 'unknown-zone'", "firing the schedule 'bad-row'"]),
    );
    expectEverySecond(await jobsOf('good'));
  });

  test('an open transaction that has changed a schedule delays that one alone', async () => {
    const { worker } = await ticking([secondly('a'), secondly('b')]);
    await nextEvent(worker, 'fired', ({ schedule }) => schedule === 'a');
    await database.db.transaction(async (tx) => {
      await queue.schedules.pause(tx, 'a');
      await queue.schedules.resume(tx, 'a');
      const [a, b] = [(await jobsOf('a')).length, (await jobsOf('b')).length];
      await until(async () => (await jobsOf('b')).length >= b + 3);
      expect((await jobsOf('a')).length).toBe(a);
    });
    const before = (await jobsOf('a')).length;
    await until(async () => (await jobsOf('a')).length >= before + 3);
    expectEverySecond(await jobsOf('a'));
    expectEverySecond(await jobsOf('b'));
  });

  test.each(['schedules: found', 'schedules: fired'] as const)(
    'a connection that breaks at %s loses and doubles no tick, and is one error',
    async (point) => {
      let broken = 0;
      atFaultPoints(async (at) => {
        if (at === point && ++broken % 2 === 0) throw new Error('the connection broke');
      });
      const { errors } = await ticking([secondly('a'), secondly('b')]);
      await until(() => broken >= 4);
      atFaultPoints();
      const seen = (await jobsOf('a')).length;
      await until(async () => (await jobsOf('a')).length >= seen + 2);
      expectEverySecond(await jobsOf('a'));
      expectEverySecond(await jobsOf('b'));
      expect(errors.length).toBe(Math.floor(broken / 2));
    },
  );

  test('a payload that its schema refuses, asynchronously, is refused by start', async () => {
    const job = defineJob('checked', { payload: z.object({}).refine(async () => false) });
    const schedules = [defineSchedule('a', { job, payload: {}, every: 1_000 })];
    const worker = createWorker(database.db, { queue, handlers: [handle(tick, () => undefined)], schedules });
    await expect(worker.start()).rejects.toThrow(InvalidPayloadError);
    expect(await rowOf('a')).toBeUndefined();
  });

  test.each([1, 3])(
    'a process that is killed just before it fires %s schedules loses and doubles none',
    async (count) => {
      const env = { DATABASE_URL: database.url, SCHEDULES: String(count) };
      const first = startWorkerProcess('worker/fixtures/ticking-worker.ts', env);
      onTestFinished(() => void first.child.kill('SIGKILL'));
      await first.printed('fired s0');
      await first.end('SIGKILL');
      const hanging = startWorkerProcess('worker/fixtures/ticking-worker.ts', { ...env, HANG: '1' });
      onTestFinished(() => void hanging.child.kill('SIGKILL'));
      await hanging.printed('found');
      await hanging.end('SIGKILL');
      const last = startWorkerProcess('worker/fixtures/ticking-worker.ts', env);
      onTestFinished(() => void last.child.kill('SIGKILL'));
      await last.printed('fired s0');
      await until(() => last.output().split('fired s0').length > 3);
      await last.end('SIGTERM');
      for (let n = 0; n < count; n++) expectEverySecond(await jobsOf(`s${n}`));
    },
    240_000,
  );
});

test('processes that are killed again and again fire each tick once', async () => {
  const env = { DATABASE_URL: database.url, SCHEDULES: '5' };
  const start = () => {
    const child = startWorkerProcess('worker/fixtures/ticking-worker.ts', env);
    onTestFinished(() => void child.child.kill('SIGKILL'));
    return child;
  };
  let running = [start(), start()];
  for (let kills = 0; kills < 4; kills++) {
    const [victim, ...others] = running;
    await victim?.printed('fired');
    await victim?.end('SIGKILL');
    running = [...others, start()];
  }
  const seen = (await jobsOf('s0')).length;
  await until(async () => (await jobsOf('s0')).length >= seen + 2);
  await Promise.all(running.map((process) => process.end('SIGTERM')));
  for (let n = 0; n < 5; n++) expectEverySecond(await jobsOf(`s${n}`));
}, 240_000);
