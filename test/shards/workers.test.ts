import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  defineJob,
  handle,
  healthHandler,
  type Queue,
  unvalidated,
  type WorkerEvents,
} from 'drizzle-queue';
import { createWorkers, type Shard, type ShardEvent, shardOf, type Workers } from 'drizzle-queue/shards';
import postgres from 'postgres';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { TcpProxy } from '../faults/tcp-proxy.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const note = defineJob('note', { payload: unvalidated<{ n: number }>() });
const NAMES = ['a', 'b', 'c', 'd'] as const;
type Name = (typeof NAMES)[number];

const databases = Object.fromEntries(NAMES.map((name) => [name, useTestDatabase({ max: 10 })])) as Record<
  Name,
  ReturnType<typeof useTestDatabase>
>;
const queues = Object.fromEntries(NAMES.map((name) => [name, createQueue()])) as Record<Name, Queue>;
/** With `fetch_types` a connection that breaks while it opens is a rejection that postgres.js itself leaves unhandled. */
const opened = (name: Name) =>
  drizzle({ client: postgres(databases[name].url, { max: 5, fetch_types: false, onnotice: () => {} }) });
let shards: () => Record<Name, Shard<ReturnType<typeof opened>>>;

beforeAll(() => {
  const made = Object.fromEntries(
    NAMES.map((name) => [name, { db: opened(name), queue: queues[name] }]),
  ) as ReturnType<typeof shards>;
  shards = () => made;
});
afterAll(async () => {
  for (const { db } of Object.values(shards())) await db.$client.end({ timeout: 1 });
});

const running: Workers[] = [];
const created = <T extends Workers<Name>>(workers: T): T => {
  running.push(workers);
  return workers;
};

beforeEach(async () => {
  for (const name of NAMES) await clearTables(databases[name].client);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(running.splice(0).map((workers) => workers.stop()));
});

/** Enqueues so many jobs by key; answers the shard that each has gone to. */
async function enqueued(count: number): Promise<Map<number, Name>> {
  const of = new Map<number, Name>();
  for (let n = 0; n < count; n++) {
    const { db, queue, name } = shardOf(shards(), n);
    await queue.enqueue(db, note, { n });
    of.set(n, name);
  }
  return of;
}

describe('the workers of four databases', () => {
  test('run each job in its own database, and tell of it with the name of the shard', async () => {
    const chosen = await enqueued(40);
    expect(new Set(chosen.values()).size).toBe(4);
    const ran = new Map<number, unknown>();
    const told = new Map<number, Name>();
    const workers = created(
      createWorkers(shards(), {
        log: false,
        handlers: [handle(note, ({ db, payload }) => void ran.set(payload.n, db))],
      }),
    );
    workers.on('completed', ({ shard, job }) =>
      told.set(Number(Reflect.get(Object(job.payload), 'n')), shard),
    );
    await workers.start();
    await until(() => told.size === 40);
    expect(told).toEqual(chosen);
    for (const [n, name] of chosen) expect(ran.get(n)).toBe(shards()[name].db);
    expect(workers.health()).toMatchObject({ live: true, ready: true, reasons: [], slots: 40 });
    expect(Object.keys(workers.health().shards)).toEqual(NAMES);
  });

  test('are registered once in each database, and leave all of them', async () => {
    const workers = created(createWorkers(shards(), { log: false, handlers: [handle(note, () => {})] }));
    await Promise.all([workers.start(), workers.start()]);
    for (const name of NAMES) {
      expect(await databases[name].client`select 1 from queue_workers`).toHaveLength(1);
    }
    await Promise.all([workers.stop(), workers.stop()]);
    for (const name of NAMES) {
      expect(await databases[name].client`select 1 from queue_workers`).toHaveLength(0);
    }
    await expect(workers.start()).rejects.toThrow('start: these workers were stopped; create new ones');
    expect(workers.health()).toMatchObject({ live: true, ready: false });
  });

  test('start without one that has no tables yet, say so, and work on it when it has', async () => {
    const { client } = databases.b;
    await client`alter table queue_jobs rename to later`;
    onTestFinished(async () => {
      await client`alter table if exists later rename to queue_jobs`;
    });
    const errors: ShardEvent<'error', Name>[] = [];
    const done: Name[] = [];
    const workers = created(createWorkers(shards(), { log: false, handlers: [handle(note, () => {})] }));
    workers.on('error', (told) => errors.push(told)).on('completed', ({ shard }) => done.push(shard));
    await workers.start();
    expect(errors[0]).toMatchObject({
      shard: 'b',
      during: 'starting',
      error: { name: 'MissingMigrationError' },
    });
    expect(errors.every(({ shard }) => shard === 'b')).toBe(true);
    const health = workers.health();
    expect(health).toMatchObject({
      live: true,
      ready: true,
      shards: { a: { ready: true }, b: { ready: false }, c: { ready: true }, d: { ready: true } },
    });
    expect(health.reasons).toEqual([
      'b: The worker has not started yet',
      'b: Its last start failed, as its error event says; the start is tried again',
    ]);
    for (const name of ['a', 'c', 'd'] as const)
      await queues[name].enqueue(databases[name].db, note, { n: 1 });
    await until(() => done.length === 3);
    await client`alter table later rename to queue_jobs`;
    await queues.b.enqueue(databases.b.db, note, { n: 1 });
    await until(() => done.includes('b'));
    await until(() => workers.health().reasons.length === 0);
    expect(Object.values(workers.health().shards).every(({ ready }) => ready)).toBe(true);
  });

  test('go on while the connections of one database are cut again and again', async () => {
    const done: Name[] = [];
    const workers = created(createWorkers(shards(), { log: false, handlers: [handle(note, () => {})] }));
    workers.on('error', () => undefined).on('completed', ({ shard }) => done.push(shard));
    await workers.start();
    const cut = () => databases.a.client`
      select pg_terminate_backend(pid) from pg_stat_activity where datname = ${databases.c.name}`;
    for (let round = 1; round <= 5; round++) {
      await cut();
      for (const name of ['a', 'b', 'd'] as const)
        await queues[name].enqueue(databases[name].db, note, { n: round });
      await until(() => done.filter((name) => name !== 'c').length === 3 * round);
    }
    const [own] = await databases.c.connect();
    await queues.c.enqueue(own?.db ?? databases.c.db, note, { n: 0 });
    await until(() => done.includes('c'));
    await until(() => workers.health().shards.c.ready);
  });

  test('go on without one whose worker or pool has ended, and have ended when all have', async () => {
    const client = postgres(databases.d.url, { max: 3, fetch_types: false, onnotice: () => {} });
    onTestFinished(() => client.end({ timeout: 0 }));
    const stopped: Name[] = [];
    const done: Name[] = [];
    const workers = created(
      createWorkers(
        { ...shards(), d: { db: drizzle({ client }), queue: createQueue() } },
        { log: false, handlers: [handle(note, () => {})] },
      ),
    );
    workers.on('stopped', ({ shard }) => stopped.push(shard));
    workers.on('error', () => undefined).on('completed', ({ shard }) => done.push(shard));
    const ended = workers.run();
    await until(() => Object.values(workers.health().shards).every(({ ready }) => ready));
    await client.end({ timeout: 0 });
    await until(() => stopped.includes('d'));
    await workers.byShard.c.stop();
    await queues.a.enqueue(databases.a.db, note, { n: 1 });
    await until(() => done.includes('a'));
    expect(workers.health()).toMatchObject({ ready: true });
    expect(workers.health().reasons).toEqual(['c: The worker has stopped', 'd: The worker has stopped']);
    await Promise.all([workers.byShard.a.stop(), workers.byShard.b.stop()]);
    await ended;
    expect(stopped.sort()).toEqual([...NAMES]);
  });

  test('stop together within the time of one, whatever their handlers and databases do', async () => {
    const shutdownTimeoutMs = 500;
    let began = 0;
    const workers = created(
      createWorkers(shards(), {
        log: false,
        shutdownTimeoutMs,
        handlers: [
          handle(note, async () => {
            began++;
            await new Promise(() => {});
          }),
        ],
      }),
    );
    workers.on('error', () => undefined);
    await workers.start();
    for (const name of NAMES) await queues[name].enqueue(databases[name].db, note, { n: 1 });
    await until(() => began === 4);
    const elsewhere = databases.a.client;
    await elsewhere`alter database ${elsewhere(databases.b.name)} allow_connections false`;
    onTestFinished(async () => {
      await elsewhere`alter database ${elsewhere(databases.b.name)} allow_connections true`;
    });
    await elsewhere`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${databases.b.name}`;
    // What one worker promises: its own stop has tests of each of its steps.
    expect(await runningMsUntil(workers.stop())).toBeLessThan(shutdownTimeoutMs + 5_000);
    for (const name of ['a', 'c', 'd'] as const) {
      const jobs = await databases[name].client`select attempt, worker_id from queue_jobs`;
      expect(jobs).toEqual([{ attempt: 0, worker_id: null }]);
    }
  });

  test('work while one database answers nothing from the start on, and stop in time', async () => {
    const proxy = await TcpProxy.start(Number(new URL(databases.a.url).port));
    proxy.weather = 'silent';
    const client = postgres(proxy.url(databases.a.url), { max: 3, fetch_types: false, onnotice: () => {} });
    onTestFinished(async () => {
      // What still waits for an answer gets an error.
      proxy.weather = 'fine';
      await client.end({ timeout: 0 });
      await proxy.close();
    });
    const done: Name[] = [];
    const workers = created(
      createWorkers(
        { ...shards(), a: { db: drizzle({ client }), queue: createQueue() } },
        { log: false, shutdownTimeoutMs: 0, handlers: [handle(note, () => {})] },
      ),
    );
    workers.on('error', () => undefined).on('completed', ({ shard }) => done.push(shard));
    const running = workers.run();
    for (const name of ['b', 'c', 'd'] as const)
      await queues[name].enqueue(databases[name].db, note, { n: 1 });
    await until(() => done.length === 3);
    expect(workers.health()).toMatchObject({ live: true, ready: true, shards: { a: { ready: false } } });
    expect(await runningMsUntil(workers.stop())).toBeLessThan(5_000);
    await running;
  });

  test('stop while a start is tried again, and try it no more', async () => {
    const { client } = databases.a;
    await client`alter table queue_jobs rename to later`;
    onTestFinished(async () => {
      await client`alter table later rename to queue_jobs`;
    });
    const errors: Name[] = [];
    const workers = created(createWorkers(shards(), { log: false, handlers: [handle(note, () => {})] }));
    workers.on('error', ({ shard }) => errors.push(shard));
    await workers.start();
    // The start, and one that was tried later.
    await until(() => errors.length >= 2);
    const told = errors.length;
    const tried = vi.spyOn(workers.byShard.a, 'start');
    await workers.stop();
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    expect(tried).not.toHaveBeenCalled();
    expect(errors).toEqual(Array(told).fill('a'));
  });
});

describe('what the workers tell', () => {
  test('a listener is called once for each event, and no more after off', async () => {
    const told: unknown[] = [];
    const listener = (event: ShardEvent<'stopping', Name>) => void told.push(event);
    const other = vi.fn();
    const workers = created(createWorkers(shards(), { log: false, handlers: [handle(note, () => {})] }));
    workers.on('stopping', listener).on('stopping', listener).on('stopped', other).off('stopped', other);
    await workers.start();
    await workers.stop();
    const each = NAMES.map((shard) => ({ running: 0, timeoutMs: 25_000, shard }));
    expect(told).toHaveLength(4);
    expect(told).toEqual(expect.arrayContaining(each));
    expect(other).not.toHaveBeenCalled();
  });

  test('a listener that rejects is an error event of the shard', async () => {
    const errors: ShardEvent<'error', Name>[] = [];
    const workers = created(createWorkers(shards(), { log: false, handlers: [handle(note, () => {})] }));
    workers.on('error', (told) => errors.push(told));
    workers.on('started', async ({ shard }) => {
      if (shard === 'c') throw new Error('refused');
    });
    await workers.start();
    await until(() => errors.length > 0);
    expect(errors).toMatchObject([
      { shard: 'c', during: "a listener of 'started'", error: { message: 'refused' } },
    ]);
  });

  test('lines begin with the name of the shard, those of errors unless something listens to them', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const lines = () => printed.mock.calls.map(([line]) => String(line));
    const fails = defineJob('fails', { maxAttempts: 1 });
    const handlers = [
      handle(fails, () => {
        throw new Error('no');
      }),
    ];
    const { client } = databases.d;
    await client`alter table queue_jobs rename to later`;
    onTestFinished(async () => {
      await client`alter table later rename to queue_jobs`;
    });
    const workers = created(createWorkers(shards(), { handlers }));
    await queues.b.enqueue(databases.b.db, fails);
    await workers.start();
    await until(() => lines().some((line) => line.includes('was discarded')));
    await until(() => lines().filter((line) => /: worker \d+ \(.+\) started/.test(line)).length === 3);
    expect(lines().filter((line) => line.includes('was discarded'))).toEqual([
      expect.stringMatching(
        /^drizzle-queue: b: job \d+ \(fails\) was discarded at attempt 1 of 1: Error: no$/,
      ),
    ]);
    expect(lines().filter((line) => line.includes('error (starting)'))[0]).toMatch(
      /^drizzle-queue: d: worker error \(starting\): MissingMigrationError: /,
    );
    const before = lines().filter((line) => line.includes('worker error (')).length;
    const errors: unknown[] = [];
    workers.on('error', (told) => errors.push(told));
    await until(() => errors.length > 0);
    expect(lines().filter((line) => line.includes('worker error ('))).toHaveLength(before);
  });

  test('each gives a shard its own settings and its own logger', async () => {
    const said: string[] = [];
    const loggerOf = (shard: string) => {
      const say = (_: object, message: string) => void said.push(`${shard} ${message}`);
      return { debug: say, info: say, warn: say, error: say };
    };
    const asked: Name[] = [];
    const started: ShardEvent<'started', Name>[] = [];
    const workers = created(
      createWorkers(shards(), {
        concurrency: 2,
        name: 'fleet',
        handlers: [handle(note, () => {})],
        each: (shard) => {
          asked.push(shard);
          return { log: loggerOf(shard), ...(shard === 'a' && { concurrency: 5, name: 'first' }) };
        },
      }),
    );
    expect(asked).toEqual(NAMES);
    workers.on('started', (told) => started.push(told));
    await workers.start();
    expect(workers.health()).toMatchObject({ slots: 11, shards: { a: { slots: 5 }, b: { slots: 2 } } });
    expect(started.find(({ shard }) => shard === 'b')).toMatchObject({ name: 'fleet/b' });
    expect(started.find(({ shard }) => shard === 'a')).toMatchObject({
      name: 'first',
      concurrency: { default: 5 },
    });
    await workers.stop();
    for (const name of NAMES) expect(said).toContain(`${name} the worker stopped`);
  });

  test('what each returns as undefined is as it is for all', async () => {
    const started: ShardEvent<'started', Name>[] = [];
    const of = (shard: Name): object => (shard === 'a' ? { concurrency: undefined, name: undefined } : {});
    const handlers = [handle(note, () => {})];
    const workers = created(
      createWorkers(shards(), { concurrency: 2, name: 'fleet', log: false, handlers, each: of }),
    );
    workers.on('started', (told) => started.push(told));
    await workers.start();
    expect(started.find(({ shard }) => shard === 'a')).toMatchObject({
      name: 'fleet/a',
      concurrency: { default: 2 },
    });
  });

  test('healthHandler answers for all of them, and says which', async () => {
    const workers = created(createWorkers(shards(), { log: false, handlers: [handle(note, () => {})] }));
    const answer = healthHandler(workers);
    const ask = async (probe: string) => {
      const response = answer(new Request(`http://probe/${probe}`));
      return [response.status, await response.json()];
    };
    expect(await ask('live')).toMatchObject([200, { ready: false, shards: { a: { ready: false } } }]);
    expect(await ask('ready')).toMatchObject([503, {}]);
    await workers.start();
    expect(await ask('ready')).toMatchObject([200, { ready: true, shards: { d: { ready: true } } }]);
    await workers.byShard.b.stop();
    expect(await ask('ready')).toMatchObject([200, { reasons: ['b: The worker has stopped'] }]);
  });
});

describe('createWorkers refuses', () => {
  const handlers = [handle(note, () => {})];
  const refused = (given: unknown, options: unknown = { handlers }) =>
    expect(() => createWorkers(given as ReturnType<typeof shards>, options as { handlers: typeof handlers }));

  test('shards that are none', () => {
    refused({}).toThrow('createWorkers: shards must have at least one shard');
    refused(undefined).toThrow('createWorkers: shards must be an object');
    refused({ 'a b': shards().a }).toThrow("1 to 64 letters, digits, _ and -, got 'a b'");
    refused({ a: undefined }).toThrow("createWorkers: the shard 'a' must be an object");
    refused({ a: { queue: queues.a } }).toThrow(
      "createWorkers: db of the shard 'a' must be a Drizzle database",
    );
    refused({ a: { db: databases.a.db } }).toThrow(
      "createWorkers: queue of the shard 'a' must be what createQueue()",
    );
  });

  test('one queue for two shards', () => {
    refused({ a: shards().a, b: { db: databases.b.db, queue: queues.a } }).toThrow(
      "createWorkers: the shards 'a' and 'b' have the same queue. Call createQueue() for each",
    );
  });

  test('options that are wrong', () => {
    refused(shards(), { handlers, concurrancy: 5 }).toThrow("createWorker: unknown option 'concurrancy'");
    refused(shards(), { handlers, each: () => ({ conc: 5 }) }).toThrow("unknown option 'conc'");
    refused(shards(), { handlers, each: 5 }).toThrow('createWorkers: each must be a function');
    refused(shards(), { handlers, each: () => undefined }).toThrow(
      'createWorkers: what each returns must be an object',
    );
    refused(shards(), { handlers, name: 7 }).toThrow('createWorkers: name must be a string');
    refused(shards(), { handlers, log: console }).toThrow('createWorkers: log can only be false');
    refused(shards(), { handlers, jobs: [defineJob('forgotten')] }).toThrow(
      "kinds without a handler: 'forgotten'",
    );
  });
});

test('each event of a worker is one of all workers', () => {
  // For the types: a listener of any event of a worker can be one of all workers.
  const workers = created(createWorkers(shards(), { log: false, handlers: [handle(note, () => {})] }));
  const events: (keyof WorkerEvents)[] = ['claimed', 'idle', 'lost'];
  for (const event of events) workers.on(event, ({ shard }) => NAMES.includes(shard));
});
