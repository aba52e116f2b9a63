import { randomBytes } from 'node:crypto';
import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSchedule,
  drain,
  handle,
  unvalidated,
} from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { REQUESTED } from '../../../src/core/sql/wake-channel.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { MOST_BYTES } from '../../../src/features/schedules/catch-up.ts';
import { Firing } from '../../../src/features/schedules/worker/firing.ts';
import { tables } from '../../queries/support/jobs.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { gate } from '../../support/gate.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import {
  database,
  expectEverySecond,
  jobsOf,
  other,
  queue,
  rowOf,
  secondly,
  setBack,
  tick,
  ticking,
  untilArmed,
  useTicking,
  yearly,
} from './ticking.ts';

useTicking();

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
}, 240_000);

test('a tick starts its job soon, and not by the next look of the minute', async () => {
  const { worker } = await ticking([secondly('a')]);
  // The first tick comes within a second.
  expect(await runningMsUntil(nextEvent(worker, 'began'))).toBeLessThan(3_000);
});

test('a worker looks at all schedules and at its own within a minute, at the latest', async () => {
  const declared = await queue.schedules.toStore('test', yearly('a'));
  const firing = (channel: string | undefined, schedules = [declared]) =>
    new Firing({
      db: database.db,
      tables: { ...tables, queueSchedules },
      channel,
      workerId: 1,
      declared: schedules,
      kinds: [],
      listener: { listening: true },
      events: new WorkerEmitter(),
      retries: { sleep: async () => false },
    });
  vi.spyOn(Math, 'random').mockReturnValue(0.999_999);
  onTestFinished(() => void vi.restoreAllMocks());
  const own = firing('channel');
  await database.client`insert into queue_workers (id, name, queues) overriding system value values (1, 'w', '[]')`;
  expect(await own.look()).toBeLessThan(60_000);
  expect(await firing('channel', []).look()).toBeLessThan(60_000);
  // Of one that is set it is not told.
  expect(await firing(undefined, []).look()).toBeLessThan(10_000);
});

describe.each([true, false])('one that is set while workers run; they listen: %s', (listen) => {
  test('fires soon, and no more once it is paused or removed', async () => {
    const { worker, fired } = await ticking([], { listen });
    const first = nextEvent(worker, 'fired');
    await queue.schedules.set(database.db, secondly('a'));
    expect(await runningMsUntil(first)).toBeLessThan(listen ? 3_000 : 8_000);
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
  }, 240_000);
});

test('a transaction that has locked hundreds holds up no other', async () => {
  const locked = Array.from({ length: 250 }, (_, n) => secondly(`locked-${n}`));
  for (const schedule of [...locked, secondly('z')]) await queue.schedules.set(database.db, schedule);
  // All are due, and the one that nobody has locked is the last of them.
  await database.client`update queue_schedules set next_at = next_at - interval '1 hour' where name <> 'z'`;
  const [connection] = await database.connect();
  const over = gate();
  const isLocked = gate();
  const importing = connection?.db.transaction(async (tx) => {
    for (const schedule of locked) await queue.schedules.set(tx, schedule);
    isLocked.open();
    await over.opened;
  });
  await isLocked.opened;
  try {
    const { worker, fired } = await ticking();
    const ofZ = ({ schedule }: { schedule: string }) => schedule === 'z';
    await nextEvent(worker, 'fired', ofZ);
    await nextEvent(worker, 'fired', ofZ);
    expect(fired.filter((text) => !text.startsWith('z '))).toEqual([]);
    over.open();
    await importing;
    await until(() => new Set(fired.map((text) => text.split(' ')[0])).size === 251);
    expect(new Set(fired).size).toBe(fired.length);
  } finally {
    over.open();
  }
}, 240_000);

test('a transaction that has changed a declared schedule holds up no other declaration', async () => {
  await queue.schedules.set(database.db, yearly('a'));
  const [connection] = await database.connect();
  await connection?.db.transaction(async (tx) => {
    await queue.schedules.pause(tx, 'a');
    const { worker, errors } = await ticking([yearly('a'), secondly('b')]);
    await nextEvent(worker, 'fired', ({ schedule }) => schedule === 'b');
    expect(await rowOf('a')).toMatchObject({ declared_by: null, paused_at: null });
    expect(errors).toEqual([]);
  });
  await until(async () => (await rowOf('a'))?.declared_by !== null);
  expect((await rowOf('a'))?.paused_at).not.toBeNull();
}, 240_000);

test('a declaration that the database refuses costs few statements, however many others there are', async () => {
  await database.client`alter table queue_schedules add constraint mine check (name <> 's199')`;
  onTestFinished(async () => {
    await database.client`alter table queue_schedules drop constraint mine`;
  });
  const counted = countedDatabase();
  const schedules = Array.from({ length: 200 }, (_, n) => yearly(`s${n}`));
  const { errors } = await ticking(schedules, { db: counted.db });
  await until(() => errors.length > 0);
  expect(errors[0]).toMatchObject({ during: 'declaring schedules' });
  // All, and then two halves for each of the eight times that 200 can be halved.
  expect(counted.about('insert into "queue_schedules"')).toBeLessThanOrEqual(17);
  expect(await database.db.$count(queueSchedules)).toBe(199);
}, 240_000);

test('an interval of other hands without a length is an error, and the others fire', async () => {
  await queue.schedules.set(database.db, secondly('a'));
  await queue.schedules.set(database.db, secondly('b'));
  await database.client`update queue_schedules set every_ms = -5 where name = 'a'`;
  const { worker, errors } = await ticking();
  await nextEvent(worker, 'fired', ({ schedule }) => schedule === 'b');
  await until(() => errors.length > 0);
  expect(errors[0]).toMatchObject({ during: "firing the schedule 'a'", error: { name: 'TypeError' } });
});

test.each([
  ['a right that it lacks', '42501'],
  ['a table that is not there', '42P01'],
])('a schedule whose job a trigger refuses for %s holds up no other', async (_, state) => {
  const { client } = database;
  await client.unsafe(`create function refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused' using errcode = '${state}'; end $$`);
  await client`
    create trigger refuse before insert on queue_jobs for each row when (new.kind = 'other')
    execute function refuse()`;
  onTestFinished(async () => {
    await client`drop trigger refuse on queue_jobs`;
    await client`drop function refuse`;
  });
  const refused = defineSchedule('refused', { job: other, cron: '* * * * * *' });
  const { fired, errors } = await ticking([refused, secondly('a')]);
  await until(async () => errors.length >= 3 && (await jobsOf('a')).length >= 5);
  expect(new Set(errors.map(({ during }) => during))).toEqual(new Set(["firing the schedule 'refused'"]));
  expectEverySecond(await jobsOf('a'));
  expect(fired.some((text) => text.startsWith('refused'))).toBe(false);
});

describe('schedules that the database refuses for want of a right', () => {
  /** Until the returned function is called. */
  async function refuseJobsOf(kind: string): Promise<() => Promise<void>> {
    const { client } = database;
    await client`create function refuse() returns trigger language plpgsql as $$
      begin raise exception 'refused' using errcode = '42501'; end $$`;
    await client.unsafe(`create trigger refuse before insert on queue_jobs for each row
      when (new.kind = '${kind}') execute function refuse()`);
    const end = async () => {
      await client`drop trigger if exists refuse on queue_jobs`;
      await client`drop function if exists refuse`;
    };
    onTestFinished(end);
    return end;
  }

  test('hold up no other, and no declaration, also where nothing else is due', async () => {
    await refuseJobsOf('other');
    for (const name of ['b', 'c']) {
      await queue.schedules.set(database.db, defineSchedule(name, { job: other, cron: '0 0 1 1 *' }));
      await setBack(name, '2 years');
    }
    const { errors } = await ticking([secondly('a')], { jobs: [tick, other] });
    await until(async () => errors.length >= 3 && (await jobsOf('a')).length >= 5);
    expectEverySecond(await jobsOf('a'));
    // One for both of them.
    expect(errors[0]?.during).toBe('firing schedules');
    const again = await ticking([defineSchedule('b', { job: tick, cron: '0 0 1 1 *' })]);
    await nextEvent(again.worker, 'fired', ({ schedule }) => schedule === 'b');
  }, 240_000);

  test('keep their due tick for when the right is there, whatever a deploy declares', async () => {
    const grant = await refuseJobsOf('tick');
    await queue.schedules.set(database.db, yearly('a'));
    await setBack('a', '2 years');
    const { worker, errors } = await ticking([secondly('a')]);
    await until(() => errors.length > 3);
    const fired = nextEvent(worker, 'fired');
    await grant();
    expect((await fired)[0].ticks.map((at) => at.toISOString().slice(4))).toEqual(['-01-01T00:00:00.000Z']);
  }, 240_000);
});

test('one that was set, of a kind without handlers, is taken over by the worker that declares it', async () => {
  await queue.schedules.set(database.db, defineSchedule('a', { job: tick, every: 60_000 }));
  const declared = defineSchedule('a', { job: other, cron: '* * * * * *' });
  await ticking([declared], { jobs: [other] });
  // First it fires what was due before.
  await until(async () => {
    const kinds = await database.client<{ kind: string }[]>`
      select kind from queue_jobs union all select kind from queue_results`;
    return kinds.some(({ kind }) => kind === 'other');
  });
});

describe('a deploy with another timing, while a tick of the old one is due that cannot be fired', () => {
  test.each([
    ['because its job is refused', 'alter table queue_jobs add check (payload <> \'"old"\')'],
    ['because its zone is not known here', "update queue_schedules set time_zone = 'Mars/Phobos'"],
  ])(
    '%s, prevails',
    async (_, cause) => {
      const job = defineJob('tick', { payload: unvalidated<string>() });
      const old = await ticking([defineSchedule('a', { job, payload: 'old', cron: '0 0 1 1 *' })]);
      await untilArmed('a');
      await old.worker.stop();
      await database.client.unsafe(cause);
      onTestFinished(async () => {
        await database.client`alter table queue_jobs drop constraint if exists queue_jobs_payload_check`;
      });
      await setBack('a', '2 years');
      const { worker, errors } = await ticking([
        defineSchedule('a', { job, payload: 'new', cron: '* * * * * *' }),
      ]);
      const [fired] = await nextEvent(worker, 'fired');
      expect(fired).toMatchObject({ schedule: 'a', ids: [expect.any(Number)] });
      expect(errors.map(({ during }) => during)).toEqual(
        Array.from({ length: 3 }, () => "firing the schedule 'a'"),
      );
    },
    240_000,
  );
});

test('thousands of missed ticks fire a thousand at a time', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names) {
    await queue.schedules.set(database.db, secondly(name));
    await setBack(name, '1 hour');
  }
  const { fired, errors } = await ticking();
  await until(() => fired.length >= 5_000);
  const [most] = await database.client<{ jobs: number }[]>`
    select count(*)::int as jobs from (
      select created_at from queue_jobs union all select created_at from queue_results
    ) as j group by created_at order by jobs desc limit 1`;
  expect(most?.jobs).toBeLessThan(1_100);
  expect(new Set(fired).size).toBe(fired.length);
  expect(errors).toEqual([]);
}, 240_000);

test('missed ticks of a large payload fire a few at a time, each once and in order', async () => {
  const job = defineJob('tick', { payload: unvalidated<string>() });
  const payload = randomBytes(300_000).toString('base64');
  const large = (name: string) => defineSchedule(name, { job, payload, every: 1_000, catchUp: 'all' });
  for (const name of ['a', 'b']) {
    await queue.schedules.set(database.db, large(name));
    await setBack(name, '1 minute');
  }
  const { fired, errors } = await ticking();
  await until(() => fired.length >= 120);
  const [most] = await database.client<{ bytes: number }[]>`
    select sum(pg_column_size(payload))::int as bytes from (
      select created_at, payload from queue_jobs union all select created_at, payload from queue_results
    ) as j group by created_at order by bytes desc limit 1`;
  expect(most?.bytes).toBeLessThan(2 * MOST_BYTES);
  for (const name of ['a', 'b']) expectEverySecond(await jobsOf(name));
  expect(new Set(fired).size).toBe(fired.length);
  expect(errors).toEqual([]);
}, 240_000);

test('one whose catch_up another hand has changed to a word that is not known here does not fire', async () => {
  await queue.schedules.set(database.db, secondly('a'));
  await database.client`update queue_schedules set catch_up = 'some'`;
  const { worker, errors } = await ticking([secondly('b')]);
  await nextEvent(worker, 'fired', ({ schedule }) => schedule === 'b');
  await until(() => errors.length > 0);
  expect(errors[0]).toMatchObject({ during: "firing the schedule 'a'", error: { name: 'TypeError' } });
  expect(await jobsOf('a')).toEqual([]);
});

test('one that has failed is tried again soon, although its time comes while a look is under way', async () => {
  const { client } = database;
  await client`create function refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused'; end $$`;
  await client`create trigger refuse before insert on queue_jobs for each row execute function refuse()`;
  const { worker, errors } = await ticking();
  const [connection = database] = await database.connect();
  const fired = nextEvent(worker, 'fired');
  let failedMs = Number.NaN;
  worker.on('error', () => {
    failedMs = performance.now();
  });
  await queue.schedules.set(database.db, secondly('a'));
  for (let isMet = false; !isMet; ) {
    const times = errors.length + 1;
    await until(() => errors.length >= times, { intervalMs: 5 });
    // Up to a quarter sooner or later than this it is tried again.
    const againMs = 500 * 2 ** times;
    await connection.client.begin(async (tx) => {
      await tx`lock table queue_schedules in access exclusive mode`;
      // The worker looks, and the look waits for the lock.
      await client`select pg_notify(${queue.schedules.channel ?? ''}, ${REQUESTED})`;
      await until(async () => {
        const [row] = await client`select 1 from pg_locks as l join pg_database as d on d.oid = l.database
          where d.datname = current_database() and not l.granted`;
        return row !== undefined;
      });
      // A busy machine may be too late for that: with its next failure, then.
      isMet = errors.length === times && performance.now() - failedMs < 0.75 * againMs;
      if (!isMet) return;
      await client`drop trigger refuse on queue_jobs`;
      await until(() => performance.now() - failedMs > 1.25 * againMs);
    });
  }
  // The next look by time comes after 45 seconds or more.
  expect(await runningMsUntil(fired)).toBeLessThan(20_000);
}, 240_000);

test('one that was set is fired by workers of its kind alone', async () => {
  await queue.schedules.set(database.db, secondly('a'));
  const revision = (await rowOf('a'))?.revision;
  const stranger = await ticking([yearly('y')], { jobs: [other] });
  await untilArmed('y');
  expect((await rowOf('a'))?.revision).toBe(revision);
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
    const revision = Number((await rowOf('a'))?.revision);
    await ticking();
    await until(async () => Number((await rowOf('a'))?.revision) === revision + 1);
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

  test('nor does it when the schedule is changed before its time has come again', async () => {
    await queue.schedules.set(database.db, secondly('a'));
    await setBack('a', '-1 hour');
    const { nextAt } = await queue.schedules.set(database.db, secondly('a', { every: 2_000 }));
    expect(nextAt?.getTime()).toBeGreaterThan(Date.parse((await rowOf('a'))?.passed_at));
    await ticking([secondly('b')]);
    await untilArmed('a');
    await until(async () => (await jobsOf('b')).length >= 3);
    expect(await jobsOf('a')).toEqual([]);
    expect(await queue.schedules.find(database.db, 'a')).toMatchObject({ nextAt });
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
    await emptyTables(database.client, 'queue_jobs', 'queue_results');
    const { worker: again } = await ticking([yearly('a'), secondly('b')]);
    await nextEvent(again, 'fired', ({ schedule }) => schedule === 'b');
    expect(await jobsOf('a')).toEqual([]);
  });
});

test('a drain fires what is due, and works its jobs off', async () => {
  await queue.schedules.set(database.db, yearly('a'));
  await setBack('a', '400 days');
  // Seldom enough that none of its ticks comes while a drain runs.
  const schedules = [secondly('declared', { every: 3_600_000 })];
  const handlers = [handle(tick, () => undefined)];
  expect(await drain(database.db, { queue, handlers, schedules, deadlineMs: 10_000 })).toMatchObject({
    completed: 1,
    empty: true,
  });
  await setBack('declared', '3 hours');
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
