import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  defineSchedule,
  drain,
  handle,
  InvalidPayloadError,
  type JobDefinition,
  type ScheduleDefinition,
  schedulesIn,
  type Worker,
  type WorkerEvents,
} from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { atFaultPoints } from '../../../src/sql/fault-point.ts';
import { addControlTables } from '../../support/control-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import { startWorkerProcess } from '../worker-process.ts';

const database = useTestDatabase({ max: 8 });
const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
const tick = defineJob('tick');
const other = defineJob('other');

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers, queue_schedules`;
});
afterEach(() => atFaultPoints());

interface Ticking {
  readonly worker: Worker;
  /** What it has fired, as `name tick`. */
  readonly fired: string[];
  readonly errors: WorkerEvents['error'][0][];
}

/** A worker that fires schedules and has started. */
async function ticking(
  schedules: readonly ScheduleDefinition<unknown>[] = [],
  { jobs = [tick] as JobDefinition[], listen = true, db = database.db as Database } = {},
): Promise<Ticking> {
  const worker = createWorker(db, {
    queue,
    listen,
    handlers: jobs.map((job) => handle(job, () => undefined)),
    schedules: schedules as readonly ScheduleDefinition[],
  });
  const fired: string[] = [];
  const errors: WorkerEvents['error'][0][] = [];
  worker.on('fired', ({ schedule, ticks }) => {
    for (const at of ticks) fired.push(`${schedule} ${at.toISOString()}`);
  });
  worker.on('error', (error) => errors.push(error));
  onTestFinished(() => worker.stop());
  await worker.start();
  return { worker, fired, errors };
}

/** The ticks of which there was ever a job, live or finished, in order; one that came twice is there twice. */
async function jobsOf(name: string): Promise<string[]> {
  const rows = await database.client<{ tick: string }[]>`
    select metadata ->> 'tick' as tick from queue_jobs where metadata ->> 'schedule' = ${name}
    union all
    select metadata ->> 'tick' from queue_results where metadata ->> 'schedule' = ${name} order by tick`;
  return rows.map(({ tick }) => tick);
}

const rowOf = async (name: string) => {
  const [row] = await database.client`select * from queue_schedules where name = ${name}`;
  return row;
};

/** The schedule is as it would be had nobody looked for so long. */
const setBack = (name: string, interval: string) => database.client`
  update queue_schedules set passed_at = passed_at - ${interval}::interval,
    next_at = next_at - ${interval}::interval, created_at = created_at - ${interval}::interval
  where name = ${name}`;

/** Waits until the schedule has been looked at: its next tick is known. */
const untilArmed = (name: string) =>
  until(async () => {
    const row = await rowOf(name);
    return row !== undefined && row.next_at > row.passed_at;
  });

const secondly = (name: string, more: object = {}) =>
  defineSchedule(name, { job: tick, every: 1_000, catchUp: 'all', ...more });
const yearly = (name: string, more: object = {}) =>
  defineSchedule(name, { job: tick, cron: '0 0 1 1 *', ...more });

/** Each is a second after the one before. */
function expectEverySecond(ticks: readonly string[]): void {
  const times = ticks.map((tick) => Date.parse(tick));
  expect(times).toEqual(times.map((_, at) => (times[0] ?? 0) + at * 1_000));
}

test('a declared schedule fires each tick once, however many workers there are', async () => {
  const workers = await Promise.all(Array.from({ length: 4 }, () => ticking([secondly('a'), secondly('b')])));
  await until(async () => (await jobsOf('a')).length >= 4 && (await jobsOf('b')).length >= 4);
  await Promise.all(workers.map(({ worker }) => worker.stop()));
  for (const name of ['a', 'b']) {
    const ticks = await jobsOf(name);
    expectEverySecond(ticks);
    const fired = workers.flatMap(({ fired }) => fired.filter((text) => text.startsWith(`${name} `))).sort();
    expect(fired).toEqual(ticks.map((tick) => `${name} ${tick}`));
  }
  expect(workers.flatMap(({ errors }) => errors)).toEqual([]);
}, 30_000);

test('a tick starts its job soon, and not by the next look of the minute', async () => {
  const { worker } = await ticking([secondly('a')]);
  const [{ job }] = await nextEvent(worker, 'began');
  const [row] = await database.client<{ late: number }[]>`
    select date_part('epoch', now() - ${String(job.metadata.tick)}::timestamptz) as late`;
  expect(row?.late).toBeLessThan(2);
});

describe.each([true, false])('one that is set while workers run; they listen: %s', (listen) => {
  test('fires soon, and no more once it is paused or removed', async () => {
    const { worker, fired } = await ticking([], { listen });
    const first = nextEvent(worker, 'fired');
    await queue.schedules.set(database.db, secondly('a'));
    const startMs = performance.now();
    await first;
    expect(performance.now() - startMs).toBeLessThan(listen ? 3_000 : 8_000);
    await queue.schedules.pause(database.db, 'a');
    const paused = (await rowOf('a'))?.revision;
    await queue.schedules.set(database.db, secondly('b'));
    await until(async () => (await jobsOf('b')).length >= 2);
    expect((await rowOf('a'))?.revision).toBe(paused);
    const resumed = nextEvent(worker, 'fired', ({ schedule }) => schedule === 'a');
    await queue.schedules.resume(database.db, 'a');
    await resumed;
    await queue.schedules.remove(database.db, 'a');
    const left = (await jobsOf('a')).length;
    const before = (await jobsOf('b')).length;
    await until(async () => (await jobsOf('b')).length >= before + 2);
    expect(await jobsOf('a')).toHaveLength(left);
    expect(new Set(fired).size).toBe(fired.length);
  }, 40_000);
});

test('one that was set is fired by workers of its kind alone', async () => {
  await queue.schedules.set(database.db, secondly('a'));
  const stranger = await ticking([yearly('y')], { jobs: [other] });
  await untilArmed('y');
  expect((await rowOf('a'))?.revision).toBe('0');
  const { worker } = await ticking();
  await nextEvent(worker, 'fired', ({ schedule }) => schedule === 'a');
  expect(stranger.fired).toEqual([]);
});

describe('after a time without workers', () => {
  // Of ticks that came 2.5, 1.5 and 0.5 hours ago.
  test.each([
    ['latest', [3]],
    ['none', []],
    ['all', [1, 2, 3]],
  ] as const)('%s', async (catchUp, expected) => {
    await queue.schedules.set(database.db, defineSchedule('a', { job: tick, every: 3_600_000, catchUp }));
    await setBack('a', '3.5 hours');
    const created = (await queue.schedules.find(database.db, 'a'))?.createdAt.getTime() ?? 0;
    const nth = (n: number) => new Date(Math.floor(created / 1_000) * 1_000 + n * 3_600_000);
    await ticking();
    await until(async () => (await rowOf('a'))?.revision === '1');
    expect(await jobsOf('a')).toEqual(expected.map((n) => nth(n).toISOString()));
    expect(await queue.schedules.find(database.db, 'a')).toMatchObject({ nextAt: nth(4) });
  });

  test('a pause is such a time, too', async () => {
    await queue.schedules.set(database.db, secondly('a', { catchUp: 'all' }));
    await queue.schedules.pause(database.db, 'a');
    await setBack('a', '1 minute');
    const { worker } = await ticking();
    const fired = nextEvent(worker, 'fired');
    await queue.schedules.resume(database.db, 'a');
    expect((await fired)[0].ticks.length).toBeGreaterThanOrEqual(59);
    expectEverySecond(await jobsOf('a'));
  });

  test('a clock that was set back fires nothing again', async () => {
    const { worker } = await ticking([secondly('a')]);
    await nextEvent(worker, 'fired');
    await worker.stop();
    const before = await jobsOf('a');
    // As the database sees it once its clock is an hour behind.
    await setBack('a', '-1 hour');
    const next = await ticking([secondly('a'), secondly('b')]);
    await until(async () => (await jobsOf('b')).length >= 2);
    expect(await jobsOf('a')).toEqual(before);
    expect(next.fired.filter((text) => text.startsWith('a '))).toEqual([]);
  });
});

describe('jobs that are gone', () => {
  test('are no reason to fire a tick again', async () => {
    const { worker } = await ticking([yearly('a')]);
    await untilArmed('a');
    await setBack('a', '400 days');
    await worker.stop();
    const first = await ticking([yearly('a')]);
    await until(async () => (await jobsOf('a')).length === 1);
    await first.worker.stop();
    await database.client`truncate queue_jobs, queue_results`;
    const { worker: again } = await ticking([yearly('a'), secondly('b')]);
    await nextEvent(again, 'fired', ({ schedule }) => schedule === 'b');
    expect(await jobsOf('a')).toEqual([]);
  });
});

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
  }, 30_000);

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
  }, 30_000);

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
  }, 40_000);
});

describe('what fails', () => {
  test('a schedule that cannot be fired does not keep the others', async () => {
    await queue.schedules.set(database.db, secondly('unknown-zone', { timeZone: 'Europe/Vienna' }));
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
    60_000,
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
}, 90_000);

test('a drain fires what is due, and works its jobs off', async () => {
  await queue.schedules.set(database.db, yearly('a'));
  await setBack('a', '400 days');
  const schedules = [secondly('declared')];
  const handlers = [handle(tick, () => undefined)];
  expect(await drain(database.db, { queue, handlers, schedules, deadlineMs: 10_000 })).toMatchObject({
    completed: 1,
    empty: true,
  });
  await setBack('declared', '3 seconds');
  expect((await drain(database.db, { queue, handlers, schedules, deadlineMs: 10_000 })).completed).toBe(3);
});

test('a worker whose queue has no schedules asks nothing, and one with distant ones waits for them', async () => {
  const plain = countedDatabase();
  const none = createWorker(plain.db, { queue: createQueue(), handlers: [handle(tick, () => undefined)] });
  onTestFinished(() => none.stop());
  await none.start();
  const waiting = countedDatabase();
  await ticking([yearly('y')], { db: waiting.db });
  // It looks again when it begins to listen, and then no more.
  await until(async () => (await untilArmed('y')) && waiting.about('queue_schedules') > 5);
  const { worker } = await ticking([secondly('beside')]);
  await nextEvent(worker, 'fired');
  const before = waiting.about('queue_schedules');
  await until(async () => (await jobsOf('beside')).length >= 5);
  expect(waiting.about('queue_schedules')).toBe(before);
  expect(plain.about('queue_workers')).toBeGreaterThan(0);
  expect(plain.about('queue_schedules')).toBe(0);
});

/** The test's database, counting what is said of a table outside of transactions. */
function countedDatabase() {
  const dialect = new PgDialect();
  const said: string[] = [];
  const db = new Proxy(database.db, {
    get(target, key) {
      if (key !== 'execute') return Reflect.get(target, key);
      return (query: SQL) => {
        said.push(dialect.sqlToQuery(query).sql);
        return target.execute(query);
      };
    },
  });
  return { db, about: (table: string) => said.filter((text) => text.includes(table)).length };
}
