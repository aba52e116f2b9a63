import { type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { createQueue, type Executor, limitsIn, schedulesIn, workflowsIn } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import * as control from 'drizzle-queue/schema/control';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Database } from '../../src/core/sql/executor.ts';
import { Looks, within } from '../../src/entries/dashboard/looks.ts';
import { Searches } from '../../src/entries/dashboard/searches.ts';
import { addJob } from '../queries/support/jobs.ts';
import { addControlTables, addWorkflowTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, get, page, textOf } from './support/visits.ts';

const database = useTestDatabase();

/** The same database, which counts the transactions that looks begin. */
function counted(): { db: Database; readonly transactions: number } {
  let transactions = 0;
  const db = new Proxy(database.db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) => {
        if (name === 'transaction') transactions++;
        return Reflect.apply(value, target, given);
      };
    },
  });
  return {
    db,
    get transactions() {
      return transactions;
    },
  };
}

test('a hundred viewers at once cost as much as one', async () => {
  await addJob(database.client);
  const one = counted();
  const options = { queue: createQueue(), authorize: () => 'read' as const };
  await page(createDashboard({ ...options, db: one.db }), '/');
  const many = counted();
  const dashboard = createDashboard({ ...options, db: many.db });
  const pages = await Promise.all(Array.from({ length: 100 }, () => get(dashboard, '/')));
  expect(pages.map(({ status }) => status)).toEqual(Array(100).fill(200));
  expect(many.transactions).toBe(one.transactions);
});

test('every page is there with one connection', async () => {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('one was opened');
  const dashboard = createDashboard({ db: connection.db, queue: createQueue(), authorize: () => 'write' });
  const paths = [
    '/',
    '/jobs',
    '/errors',
    '/queues',
    '/workers',
    '/database',
    '/jobs/many?action=cancel&of=all&q=',
  ];
  const pages = await Promise.all(paths.map((path) => get(dashboard, path)));
  expect(pages.map(({ status }) => status)).toEqual(paths.map(() => 200));
});

test('a look that takes too long is ended, rests, and leaves its connection as it was', async () => {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('one was opened');
  const { db } = connection;
  let asked = 0;
  const slow = async (tx: Executor) => {
    asked++;
    await tx.execute(sql`select pg_sleep(30)`);
  };
  const looks = new Looks(db, createQueue().tables);
  expect(await looks.at('slow', 50, slow)).toBeUndefined();
  expect(await looks.at('slow', 50, slow)).toBeUndefined();
  expect(asked).toBe(1);
  const [row] = await db.execute<{ statement_timeout: string }>(sql`show statement_timeout`);
  expect(row?.statement_timeout).toBe('0');
});

test('what somebody has just changed is looked at anew, and a look from before is not what they get', async () => {
  const looks = new Looks(another(database.db), createQueue().tables);
  let value = 1;
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const before = looks.at('x', 10_000, async () => {
    const seen = value;
    begin();
    await gate;
    return seen;
  });
  await begun;
  value = 2;
  looks.forget();
  const after = looks.at('x', 1_000, () => Promise.resolve(value));
  release();
  expect(await Promise.all([before, after])).toEqual([1, 2]);
  expect(await looks.at('x', 1_000, () => Promise.resolve(3))).toBe(2);
});

test('an error other than the timeout is thrown, and not kept', async () => {
  const looks = new Looks(another(database.db), createQueue().tables);
  const broken = (tx: Executor) => Promise.resolve(tx.execute(sql`select 1 / 0`));
  await expect(looks.at('x', 1_000, broken)).rejects.toThrow();
  expect(await looks.at('x', 1_000, () => Promise.resolve(7))).toBe(7);
  await expect(within(database.db, createQueue().tables, 1_000, broken)).rejects.toThrow();
});

describe('searches', () => {
  afterEach(() => vi.restoreAllMocks());

  const queue = createQueue();
  const actorOf = (request: Request) => ({ actor: request.headers.get('x-actor') ?? undefined });
  const search = (n: number) => `/jobs?q=kind%3Ainvented-${n}`;

  /** A database that says how many transactions it had at once. */
  function watched() {
    let [now, most, all] = [0, 0, 0];
    const db: Database = Object.create(database.db);
    db.transaction = async (run) => {
      all++;
      most = Math.max(most, ++now);
      try {
        return await database.db.transaction(run);
      } finally {
        now--;
      }
    };
    return { db, seen: () => ({ most, all }) };
  }

  test('of one viewer run one at a time, and those that would wait too long are refused', async () => {
    const { db, seen } = watched();
    const dashboard = createDashboard({ db, queue, authorize: actorOf });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => get(dashboard, search(n), { 'x-actor': 'ann' })),
    );
    const refused = answers.filter(({ status }) => status === 503);
    expect(seen().most).toBe(1);
    expect(refused.length).toBeGreaterThan(20);
    expect(refused[0]?.headers.get('retry-after')).toBe('5');
    expect(answers.filter(({ status }) => status === 200).length).toBe(40 - refused.length);
    expect((await get(dashboard, search(99), { 'x-actor': 'ann' })).status).toBe(200);
  });

  test('of many viewers take two connections at most, and each viewer gets an answer', async () => {
    const { db, seen } = watched();
    const dashboard = createDashboard({ db, queue, authorize: actorOf });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => get(dashboard, search(n), { 'x-actor': `viewer-${n}` })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200));
    expect(seen().most).toBe(2);
  });

  test('viewers without a name are told apart by their sessions', async () => {
    const { db, seen } = watched();
    const dashboard = createDashboard({ db, queue, authorize: () => 'read' });
    const ask = (n: number, cookie: string) => get(dashboard, search(n), { cookie });
    await Promise.all([1, 2, 3].map((n) => ask(n, 'session=1')));
    expect(seen().most).toBe(1);
    await Promise.all([4, 5, 6].map((n) => ask(n, `session=${n}`)));
    expect(seen().most).toBe(2);
  });

  test('that are equal are one', async () => {
    // Each transaction takes a second, so the answers rest until the last page is made.
    let tookMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => tookMs);
    const transaction = database.db.transaction.bind(database.db);
    vi.spyOn(database.db, 'transaction').mockImplementation((run) => {
      tookMs += 1_000;
      return transaction(run);
    });
    const one = watched();
    await page(createDashboard({ db: one.db, queue, authorize: actorOf }), search(1));
    const many = watched();
    const dashboard = createDashboard({ db: many.db, queue, authorize: actorOf });
    await Promise.all(
      Array.from({ length: 40 }, (_, n) => get(dashboard, search(1), { 'x-actor': `viewer-${n}` })),
    );
    expect(many.seen().all).toBe(one.seen().all);
  });

  test('of equal words in another scope are another search', async () => {
    await emptyTables(database.client, 'queue_jobs');
    await addJob(database.client, { queue: 'mine' });
    await addJob(database.client, { queue: 'theirs' });
    const dashboard = createDashboard({
      db: another(database.db),
      queue,
      authorize: (request) => ({ queues: [String(request.headers.get('x-actor'))] }),
    });
    for (const name of ['mine', 'theirs', 'mine'])
      expect(
        (await (await get(dashboard, '/jobs', { 'x-actor': name })).text()).match(/<td><bdi>(\w+)/)?.[1],
      ).toBe(name);
  });

  test('of equal words are one, also where these are counted from now', async () => {
    await emptyTables(database.client, 'queue_jobs');
    await addJob(database.client);
    // Each transaction takes a second, so the answers rest.
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    let texts: string[] = [];
    const db: Database = Object.create(database.db);
    db.transaction = (run) =>
      database.db.transaction((tx) => {
        nowMs += 1_000;
        const view = Object.create(tx);
        view.execute = (query: Parameters<typeof tx.execute>[0]) => {
          texts.push(new PgDialect().sqlToQuery(query as SQL).sql);
          return tx.execute(query);
        };
        return run(view);
      });
    const dashboard = createDashboard({ db, queue, authorize: () => 'write' });
    const path = '/jobs/many?action=cancel&of=all&q=before%3A1h';
    expect(textOf(await page(dashboard, path))).toContain('match');
    expect(texts.length).toBeGreaterThan(0);
    texts = [];
    const laterMs = Date.now() + 2_000;
    vi.spyOn(Date, 'now').mockReturnValue(laterMs);
    await page(dashboard, path);
    expect(texts).toEqual([]);
  });

  test('take their turn in the name of who asks now', async () => {
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const searches = new Searches(another(database.db), queue.tables);
    await searches.at('ann', 'x', 10_000, async () => 1);
    nowMs += 3_600_000;
    const running = gate();
    const own = Array.from({ length: 9 }, (_, n) =>
      searches.at('ann', `own ${n}`, 100_000, async () => await running.opened),
    );
    expect(await searches.at('bob', 'x', 10_000, async () => 2)).toMatchObject({ value: 2 });
    running.open();
    await Promise.all(own);
  });

  test('rest a hundred and fifty times as long as they took', async () => {
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const searches = new Searches(another(database.db), queue.tables);
    let asked = 0;
    const look = async () => {
      nowMs += 40;
      return ++asked;
    };
    const openMs = 600_000;
    while (nowMs < openMs) {
      await searches.at('ann', 'x', 1_000, look);
      nowMs += 2_000;
    }
    expect((asked * 40) / openMs).toBeLessThan(0.0075);
    expect(asked).toBeGreaterThan(100);
    searches.forget();
    expect(await searches.at('ann', 'x', 1_000, look)).toMatchObject({ value: asked });
  });

  test('rest from what is slow twice, not from what was slow once', async () => {
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const searches = new Searches(another(database.db), queue.tables);
    let asked = 0;
    const look = (tookMs: number) =>
      searches.at('ann', 'x', 10_000, async () => {
        nowMs += tookMs;
        return ++asked;
      });
    await look(2_000);
    nowMs += 5_000;
    await look(10);
    nowMs += 5_000;
    await look(2_000);
    nowMs += 5_000;
    expect(await look(2_000)).toMatchObject({ value: 4 });
    nowMs += 250_000;
    expect(await look(2_000)).toMatchObject({ value: 4 });
    nowMs += 50_000;
    expect(await look(10)).toMatchObject({ value: 5 });
  });

  test('of every list say how old they are', async () => {
    await addControlTables(database);
    await addWorkflowTables(database);
    const listed = createQueue({
      limits: limitsIn(control, { a: { concurrency: 1 } }),
      schedules: schedulesIn(control.queueSchedules),
      workflows: workflowsIn(workflowTables),
    });
    let nowMs = Date.now();
    vi.spyOn(Date, 'now').mockImplementation(() => nowMs);
    vi.spyOn(performance, 'now').mockImplementation(() => 0);
    const dashboard = createDashboard({ db: another(database.db), queue: listed, authorize: () => 'read' });
    for (const path of ['/jobs', '/schedules', '/limits', '/flows']) {
      expect(await page(dashboard, path)).not.toContain('Searched');
    }
    nowMs += 90_000;
    for (const path of ['/jobs', '/schedules', '/limits', '/flows']) {
      expect(textOf(await page(dashboard, path))).toContain('Searched 1 min ago');
    }
  });

  test('for one job do not rest from what they have waited', async () => {
    const id = await addJob(database.client, {});
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const db: Database = Object.create(database.db);
    db.transaction = async (run) => {
      nowMs += 2_000;
      return await database.db.transaction(run);
    };
    const dashboard = createDashboard({ db, queue, authorize: actorOf });
    for (const progress of ['11', '22', '33', '44']) {
      await database.client`update queue_jobs set progress = ${`0.${progress}`}::text::jsonb where id = ${id}`;
      nowMs += 5_000;
      expect(await page(dashboard, `/jobs/${id}`)).toContain(`${progress} %`);
    }
  });

  test('that one viewer invents drop no answer of another, and no shared look', async () => {
    const names: string[] = [];
    const shared = Looks.prototype.shared;
    vi.spyOn(Looks.prototype, 'shared').mockImplementation(function (this: Looks, name, ask, pace) {
      names.push(name);
      return shared.call(this, name, ask, pace) as never;
    });
    const dashboard = createDashboard({ db: another(database.db), queue, authorize: actorOf });
    await page(dashboard, search(1));
    await page(dashboard, '/');
    expect(names.length).toBeGreaterThan(0);
    expect(names.join()).not.toContain('invented');

    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const searches = new Searches(another(database.db), queue.tables);
    let asked = 0;
    const slow = async () => {
      nowMs += 1_000;
      return ++asked;
    };
    await searches.at('bob', 'x', 10_000, slow);
    for (let n = 0; n < 201; n++) await searches.at('ann', `invented ${n}`, 10_000, async () => n);
    await searches.at('bob', 'x', 10_000, slow);
    expect(asked).toBe(1);
  });
});
