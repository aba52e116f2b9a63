import { drizzle } from 'drizzle-orm/node-postgres';
import { PgDialect } from 'drizzle-orm/pg-core';
import pg from 'pg';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { type Runner, rowsOf } from '../../../src/core/sql/executor.ts';
import { Retries } from '../../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import type { Attempts } from '../../../src/core/worker/begin/attempts.ts';
import { Holdings } from '../../../src/core/worker/claim/holdings.ts';
import { TcpProxy } from '../../faults/tcp-proxy.ts';
import { addJob, clearTables, tables } from '../../queries/support/jobs.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));
afterEach(() => void vi.restoreAllMocks());

const holder = { queue: 'q', workerId: 1 };
/** It knows of none of the jobs, and one of another claim runs. */
const knowsNone = {
  jobs: [],
  size: 1,
  giveBackLeftovers: async () => undefined,
} as unknown as Attempts;

const onReleased = vi.fn();

function makeHoldings(db: Runner = database.db): Holdings {
  const events = new WorkerEmitter();
  const retries = new Retries();
  const options = { db, tables, holder, attempts: knowsNone, events, retries, onReleased };
  return new Holdings({ ...options, onDue: () => undefined });
}

/** Answers how often it gave jobs back. */
async function release(holdings: Holdings): Promise<number> {
  onReleased.mockClear();
  await holdings.releaseUnknown();
  return onReleased.mock.calls.length;
}

const loseAnswer = (holdings: Holdings) =>
  expect(holdings.heldOf(Promise.reject(new Error('the connection broke')))).rejects.toThrow('broke');

/** Two pages, and a job that the worker holds at the beginning of the first and at the end of the second. */
async function addPages(): Promise<readonly [first: number, last: number]> {
  const first = await addJob(database.client, { workerId: 1, attempt: 1 });
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts)
    select case n % 2 when 0 then 'q' else 'other' end, 'k', 'null', 3 from generate_series(1, 50000) as n`;
  return [first, await addJob(database.client, { workerId: 1, attempt: 1 })];
}

/** A clock that moves only when it is told to: on a busy machine all that a stop may do could take more than its second. */
function ownClock(): { pass(ms: number): void } {
  let nowMs = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  return {
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

async function heldBy(id: number): Promise<unknown> {
  return (await database.client`select worker_id from queue_jobs where id = ${id}`)[0]?.worker_id;
}

test('claims go on between the pages of a look through a large table', async () => {
  const [first, last] = await addPages();
  const holdings = makeHoldings();
  await loseAnswer(holdings);
  expect(await release(holdings)).toBe(1);
  expect([await heldBy(first), await heldBy(last)]).toEqual([null, '1']);
  expect([holdings.mayHoldMore, holdings.releaseInMs]).toEqual([true, 0]);
  expect(await release(holdings)).toBe(1);
  expect(await heldBy(last)).toBe(null);
  expect(holdings.mayHoldMore).toBe(false);
  expect(holdings.releaseInMs).toBeGreaterThan(0);
});

test('an answer that is lost during a look is looked for again', async () => {
  const answer = gate();
  let asked = 0;
  const holdings = makeHoldings({
    async execute(query) {
      if (++asked === 1) await answer.opened;
      return await database.db.execute(query);
    },
  });
  await loseAnswer(holdings);
  const released = release(holdings);
  await loseAnswer(holdings);
  answer.open();
  expect(await released).toBe(0);
  expect(holdings.mayHoldMore).toBe(true);
  expect(holdings.releaseInMs).toBeLessThanOrEqual(5_000);
});

test('a stop looks for a second at most: the worker has yet to leave', async () => {
  // Two pages.
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts)
    select 'q', 'k', 'null', 3 from generate_series(1, 50001)`;
  let asked = 0;
  const clock = ownClock();
  const holdings = makeHoldings({
    async execute(query) {
      asked++;
      clock.pass(600);
      return await database.db.execute(query);
    },
  });
  await loseAnswer(holdings);
  await holdings.giveBack(new AbortController().signal);
  // How far the first page reaches, and what is held there.
  expect(asked).toBe(2);
});

test('a stop goes on where a look has got to', async () => {
  const [first, last] = await addPages();
  let takesMs = 0;
  const clock = ownClock();
  const holdings = makeHoldings({
    async execute(query) {
      clock.pass(takesMs);
      return await database.db.execute(query);
    },
  });
  await loseAnswer(holdings);
  expect(await release(holdings)).toBe(1);
  await database.client`update queue_jobs set worker_id = 1, fence = 2 where id = ${first}`;
  // The time is over after one page.
  takesMs = 600;
  await holdings.giveBack(new AbortController().signal);
  expect([await heldBy(first), await heldBy(last)]).toEqual(['1', null]);
});

test('a stop then looks at what that look has passed, and no further', async () => {
  const [first, last] = await addPages();
  const asked: string[] = [];
  const holdings = makeHoldings({
    async execute(query) {
      const { sql } = new PgDialect().sqlToQuery(query.getSQL());
      asked.push(sql.includes('offset') ? 'page' : sql.includes('update') ? 'release' : 'look');
      return await database.db.execute(query);
    },
  });
  await loseAnswer(holdings);
  expect(await release(holdings)).toBe(1);
  await database.client`update queue_jobs set worker_id = 1, fence = 2 where id = ${first}`;
  asked.length = 0;
  ownClock();
  await holdings.giveBack(new AbortController().signal);
  expect([await heldBy(first), await heldBy(last)]).toEqual([null, null]);
  expect(asked).toEqual(['page', 'look', 'release', 'page', 'look', 'release']);
});

test.each([
  ['where a page ends', / offset /, 0],
  ['what is held there', /j\.worker_id = .* as i\(id, fence\)/s, 0],
  ['what is given back', /attempt = j\.attempt - 1/, 1],
])('a look that loses the answer to %s looks at that page again', async (_, statement, released) => {
  const [first, last] = await addPages();
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const pool = new pg.Pool({ connectionString: proxy.url(database.url), max: 1 });
  pool.on('error', () => undefined);
  pool.on('connect', (client) => void client.on('error', () => undefined));
  onTestFinished(async () => {
    await proxy.close();
    await pool.end();
  });
  const holdings = makeHoldings(drizzle({ client: pool }));
  await loseAnswer(holdings);
  proxy.cuts = { statement, share: 1, commitShare: 0, holdMs: 0 };
  await expect(holdings.releaseUnknown()).rejects.toThrow();
  expect(proxy.lostAnswers).toBe(1);
  proxy.cuts = undefined;
  expect([holdings.mayHoldMore, holdings.releaseInMs]).toEqual([true, 0]);
  await until(async () => (await heldBy(first)) === (released === 1 ? null : '1'));
  expect(await release(holdings)).toBe(1 - released);
  expect([await heldBy(first), await heldBy(last)]).toEqual([null, '1']);
  expect(await release(holdings)).toBe(1);
  expect(holdings.mayHoldMore).toBe(false);
  const given =
    await database.client`select attempt, worker_id from queue_jobs where id in (${first}, ${last})`;
  expect(given).toEqual([
    { attempt: 0, worker_id: null },
    { attempt: 0, worker_id: null },
  ]);
});

test('another server that answers while jobs are given back may have forgotten ends as well', async () => {
  const answer = gate();
  let asked = 0;
  const holdings = makeHoldings({
    async execute(query) {
      const rows = await database.db.execute(query);
      // First it has asked how far the page reaches.
      if (++asked === 2) await answer.opened;
      return rows;
    },
  });
  const claimed = { kinds: [], limit: 1, among: false, sawEnd: false, leftOut: false, endMs: 0 };
  await holdings.heldOf(Promise.resolve({ ...claimed, jobs: [{} as never] }));
  holdings.noteOtherServer();
  const released = release(holdings);
  await until(() => asked === 2);
  // Its look is over, and the next server does not know that this job has ended.
  holdings.noteOtherServer();
  const id = await addJob(database.client, { workerId: 1, attempt: 2, fence: 2 });
  answer.open();
  expect(await released).toBe(0);
  expect(holdings.releaseInMs).toBe(0);
  expect(await release(holdings)).toBe(1);
  const [row] = await database.client`select worker_id, attempt from queue_jobs where id = ${id}`;
  expect(row).toEqual({ worker_id: null, attempt: 2 });
});

test('a stop tries a row again that is locked for a moment', async () => {
  const id = await addJob(database.client, { workerId: 1, attempt: 1 });
  const locked = gate();
  const metLock = gate();
  const holdings = makeHoldings({
    async execute(query) {
      const answer = await database.db.execute(query);
      if (rowsOf(answer)?.some((row) => row.locked === true)) metLock.open();
      return answer;
    },
  });
  await loseAnswer(holdings);
  const unlocking = database.client.begin(async (tx) => {
    await tx`select from queue_jobs where id = ${id} for update`;
    locked.open();
    await metLock.opened;
  });
  await locked.opened;
  ownClock();
  await holdings.giveBack(new AbortController().signal);
  expect(await heldBy(id)).toBe(null);
  await unlocking;
});

test('what is given back before a failure is told', async () => {
  const first = await addJob(database.client, { workerId: 1, attempt: 1 });
  const second = await addJob(database.client, { workerId: 1, attempt: 1 });
  await database.client.unsafe(`
    create or replace function refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused' using errcode = tg_argv[0]; end $$;
    create trigger refuse after update on queue_jobs for each row
      when (new.worker_id is null and new.id = ${second}) execute function refuse('53000')`);
  onTestFinished(async () => void (await database.client`drop function refuse cascade`));
  const holdings = makeHoldings({
    // Together they are refused, and so they are given back one by one.
    async execute(query) {
      const { sql, params } = new PgDialect().sqlToQuery(query.getSQL());
      if (sql.includes('update') && params.includes(`{${first},${second}}`)) {
        throw Object.assign(new Error('refused'), { code: '23514' });
      }
      return await database.db.execute(query);
    },
  });
  await loseAnswer(holdings);
  await expect(release(holdings)).rejects.toThrow();
  expect([await heldBy(first), await heldBy(second)]).toEqual([null, '1']);
  expect(onReleased).toHaveBeenCalledTimes(1);
});

/** Jobs that the worker holds, and may not give back; and what it says of that. */
async function refusedJobs(count: number) {
  await database.client.unsafe(`
    create or replace function refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused'; end $$;
    create trigger refuse before update on queue_jobs for each row
      when (new.worker_id is null) execute function refuse()`);
  const accept = () => database.client`drop function if exists refuse cascade`;
  onTestFinished(async () => void (await accept()));
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts, attempt, worker_id, claimed_at)
    select 'q', 'k', 'null', 3, 1, 1, now() from generate_series(1, ${count}::int4)`;
  let statements = 0;
  const holdings = makeHoldings({
    async execute(query) {
      if (new PgDialect().sqlToQuery(query.getSQL()).sql.includes('update')) statements++;
      return await database.db.execute(query);
    },
  });
  const sent = () => {
    const since = statements;
    statements = 0;
    return since;
  };
  await loseAnswer(holdings);
  return { holdings, accept, sent };
}

test('hundreds of refused jobs hold up few claims, and are tried again one at a time', async () => {
  const { holdings, accept, sent } = await refusedJobs(500);
  await holdings.releaseUnknown();
  expect(sent()).toBeLessThanOrEqual(50);
  await expect.poll(() => holdings.releaseInMs).toBe(0);
  await holdings.releaseUnknown();
  expect(sent()).toBe(1);
  await accept();
  await expect.poll(() => holdings.releaseInMs).toBe(0);
  await holdings.releaseUnknown();
  expect(sent()).toBe(2);
  expect(await database.client`select from queue_jobs where worker_id = 1`).toHaveLength(0);
});

test('a stop tries once what is refused', async () => {
  const { holdings, sent } = await refusedJobs(1);
  await holdings.releaseUnknown();
  expect(sent()).toBe(1);
  await holdings.giveBack(new AbortController().signal);
  // By its look through the table it is found no more.
  expect(sent()).toBe(1);
});

test('what is refused before a failure is tried again', async () => {
  const first = await addJob(database.client, { workerId: 1, attempt: 1 });
  const second = await addJob(database.client, { workerId: 1, attempt: 1 });
  await database.client.unsafe(`
    create or replace function refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused' using errcode = '23514'; end $$;
    create trigger refuse after update on queue_jobs for each row
      when (new.worker_id is null and new.id = ${first}) execute function refuse()`);
  const accept = () => database.client`drop function if exists refuse cascade`;
  onTestFinished(async () => void (await accept()));
  let hasBroken = false;
  const holdings = makeHoldings({
    async execute(query) {
      const { sql, params } = new PgDialect().sqlToQuery(query.getSQL());
      if (!hasBroken && sql.includes('update') && params.includes(`{${second}}`)) {
        hasBroken = true;
        throw Object.assign(new Error('no memory'), { code: '53200' });
      }
      return await database.db.execute(query);
    },
  });
  const { pass } = ownClock();
  await loseAnswer(holdings);
  await expect(release(holdings)).rejects.toThrow('no memory');
  expect(await release(holdings)).toBe(1);
  expect([await heldBy(first), await heldBy(second)]).toEqual(['1', null]);
  await accept();
  pass(250);
  expect(holdings.releaseInMs).toBe(0);
  expect(await release(holdings)).toBe(1);
  expect(await heldBy(first)).toBe(null);
});
