import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import type { Database } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { listenApartOf, listenOf } from '../../../src/core/drivers/detect.ts';
import type { ListeningConnection } from '../../../src/core/drivers/listen.ts';
import { lateAnswerTo, NoAnswerError } from '../../../src/core/worker/statements/no-answer-error.ts';
import { OwnConnection, openBeside } from '../../../src/core/worker/statements/own-connection.ts';
import { Statements, type WorkerRunner } from '../../../src/core/worker/statements/statements.ts';
import { TcpProxy } from '../../faults/tcp-proxy.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
/** For what is to be lost. What is to be answered has the time that it has by default. */
const LEAST = { leastMs: 300 };

/** A pool of node-postgres behind a proxy that can forget its connections. */
async function pooled(max = 3) {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const pool = new pg.Pool({ connectionString: proxy.url(database.url), max });
  pool.on('error', () => {});
  let made = 0;
  pool.on('connect', (client) => {
    made++;
    client.on('error', () => {});
  });
  onTestFinished(async () => {
    await proxy.close();
    await pool.end();
  });
  const db = drizzle({ client: pool }) as unknown as Database;
  return { pool, db, proxy, made: () => made };
}

/** @param spare how a connection beside the pool is made */
function statementsOn(db: Database, spare?: Database) {
  const listen = spare && listenApartOf(spare);
  const statements = new Statements({
    db,
    open: listen && (() => openBeside(listen)),
    onRefused: () => undefined,
    onPoolEnded: () => undefined,
  });
  onTestFinished(() => statements.end());
  return statements;
}

/** The process of the server that has answered. */
const pidOf = (answer: unknown) => Number((answer as { rows: { pid: number }[] }).rows[0]?.pid);
/** What it is rejected with. */
const failure = async (answer: PromiseLike<unknown>): Promise<unknown> => {
  try {
    return await answer;
  } catch (error) {
    return error;
  }
};
const PID = sql`select pg_backend_pid() as pid`;

test('an answer passes through, and so does an error of the server', async () => {
  const { db } = await pooled();
  const runner = statementsOn(db).of('claims');
  expect(pidOf(await runner.execute(PID))).toBeGreaterThan(0);
  await expect(runner.execute(sql`select 1 / 0`)).rejects.toThrow('division by zero');
});

test('past its deadline a statement is given up, its connection is closed, and so are others that are silent', async () => {
  const { db, pool, proxy, made } = await pooled();
  // Three idle connections, all of them forgotten.
  const taken = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
  for (const client of taken) client.release();
  proxy.forget('both ways', 'all');
  const statements = statementsOn(db);
  const error: unknown = await failure(statements.of('claims', LEAST).execute(PID));
  expect(error).toBeInstanceOf(NoAnswerError);
  expect(error).toMatchObject({
    part: 'claims',
    message: expect.stringMatching(/has not answered .*claims/),
  });
  expect(statements.unansweredMs.claims).toBeGreaterThanOrEqual(300);
  // What the server does with it is known once the connection is closed.
  await lateAnswerTo(error);
  expect(pidOf(await statements.of('claims').execute(PID))).toBeGreaterThan(0);
  expect(statements.unansweredMs).toEqual({});
  await until(() => made() > 3);
  const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
  for (const client of clients) {
    expect((await client.query('select 1')).rowCount).toBe(1);
    client.release();
  }
});

test('a pool without a free connection is no silence: the statement is withdrawn, and is never sent', async () => {
  const { db, pool } = await pooled(1);
  const taken = await pool.connect();
  const statements = statementsOn(db);
  const runner = statements.of('claims', LEAST);
  await database.client`create table if not exists withdrawn (n int)`;
  const error: unknown = await failure(runner.execute(sql`insert into withdrawn values (1)`));
  expect(error).toMatchObject({ message: expect.stringMatching(/pool had no connection .*Increase/) });
  expect(lateAnswerTo(error)).toBeUndefined();
  taken.release();
  expect(pidOf(await statements.of('claims').execute(PID))).toBeGreaterThan(0);
  expect(await database.client`select from withdrawn`).toHaveLength(0);
});

/** A database whose first answer comes when it is told to: as of postgres.js, which closes no connection. */
function silentOnce(): { readonly db: Database; readonly answerLate: () => void } {
  const { db } = database;
  let answerLate: () => void = () => undefined;
  const silent = Object.create(db, {
    execute: {
      value: (query: Parameters<typeof db.execute>[0]) => {
        Object.defineProperty(silent, 'execute', { value: db.execute.bind(db) });
        return new Promise((resolve) => {
          answerLate = () => resolve(db.execute(query));
        });
      },
      configurable: true,
    },
  });
  return { db: silent, answerLate: () => answerLate() };
}

test('while the pool owes an answer, a connection of its own serves, and is closed afterwards', async () => {
  const { db, answerLate } = silentOnce();
  const statements = statementsOn(db, db);
  const error: unknown = await failure(statements.of('claims', LEAST).execute(PID));
  expect(error).toBeInstanceOf(NoAnswerError);
  const runner = statements.of('claims');
  const own = async () =>
    await database.client`
      select pid from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and query like '%pg_backend_pid() as pid%'`;
  const [row] = (await runner.execute(PID)) as { pid: number }[];
  expect((await own()).map(({ pid }) => pid)).toContain(row?.pid);
  answerLate();
  await lateAnswerTo(error);
  await until(async () => !(await own()).some(({ pid }) => pid === row?.pid));
  expect(await runner.execute(PID)).toHaveLength(1);
});

test('what was sent on that connection is answered there, although the pool is well again', async () => {
  const { db, answerLate } = silentOnce();
  const statements = statementsOn(db, (await pooled()).db);
  const error: unknown = await failure(statements.of('heartbeat', LEAST).execute(PID));
  expect(error).toBeInstanceOf(NoAnswerError);
  const { answer } = await database.client.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(7)`;
    const answer = statements
      .of('claims')
      .execute(sql`select pg_advisory_xact_lock(7), pg_backend_pid() as pid`)
      .then(pidOf, String);
    await until(async () => {
      const blocked = await tx`select from pg_locks where locktype = 'advisory' and not granted`;
      return blocked.length === 1;
    });
    answerLate();
    await lateAnswerTo(error);
    return { answer };
  });
  const pid = await answer;
  expect(pid).toEqual(expect.any(Number));
  // Then it is closed.
  await until(
    async () => (await database.client`select from pg_stat_activity where pid = ${pid}`).length === 0,
  );
});

test('a sort of statements that is merely slow gets more time, and then keeps it', async () => {
  const { db } = await pooled();
  const statements = statementsOn(db);
  const quick = statements.of('heartbeat', LEAST);
  const slow = statements.of('sweeps', LEAST);
  /** How long a slow statement took, and whether it was answered. */
  const slowly = async (): Promise<{ readonly isAnswered: boolean; readonly tookMs: number }> => {
    const startMs = performance.now();
    const error = await failure(slow.execute(sql`select pg_sleep(1.2)`)).then((answer) =>
      answer instanceof Error ? answer : undefined,
    );
    if (error !== undefined) expect(error).toBeInstanceOf(NoAnswerError);
    return { isAnswered: error === undefined, tookMs: performance.now() - startMs };
  };
  const beat = setInterval(() => void failure(quick.execute(PID)), 50);
  onTestFinished(() => clearInterval(beat));
  let losses = 0;
  let answers = 0;
  await until(async () => {
    const { isAnswered, tookMs } = await slowly();
    if (isAnswered) return ++answers === 3;
    // Each has twice the time of the one before, also after an answer: 1.2 s and more are enough on a quiet machine.
    expect(tookMs).toBeGreaterThanOrEqual(LEAST.leastMs * 2 ** losses);
    losses++;
    return false;
  });
  expect(losses).toBeGreaterThan(0);
});

test('a sort gets more time, too, where only the connection that listens is answered', async () => {
  const { db } = await pooled();
  const statements = statementsOn(db);
  const beside = database.db;
  const own = new OwnConnection(
    { runner: beside, signal: new AbortController().signal, abandon: () => undefined },
    () => statements.noteAnswerBeside(),
  );
  const beat = setInterval(() => void failure(own.runner.execute(PID)), 50);
  onTestFinished(() => clearInterval(beat));
  const locked = statements.of('claims', LEAST);
  for (let losses = 0; losses < 3; losses++) {
    const startMs = performance.now();
    expect(await failure(locked.execute(sql`select pg_sleep(30)`))).toBeInstanceOf(NoAnswerError);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(LEAST.leastMs * 2 ** losses);
  }
});

test('a statement that is given up is sent once, also of a start', async () => {
  let sent = 0;
  // As a query of Drizzle: it is sent by each look at it.
  const lazy = Object.fromEntries([['then', () => void sent++]]);
  const db = Object.create(database.db, { execute: { value: () => lazy } });
  const statements = statementsOn(db);
  for (const part of ['start', 'claims'] as const) {
    sent = 0;
    expect(await failure(statements.of(part, LEAST).execute(PID))).toBeInstanceOf(NoAnswerError);
    // The look at what comes late.
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toBe(1);
  }
});

test('a stall of the whole server gives a sort no more time than the stall took', async () => {
  const { db, pool, proxy } = await pooled();
  const taken = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
  for (const client of taken) client.release();
  const statements = statementsOn(db);
  const leastMs = 5_000;
  const stalled = statements.of('claims', { leastMs });
  // Nothing else is asked meanwhile, so nothing else is answered.
  await stalled.execute(sql`select pg_sleep(${leastMs / 2_000})`);
  proxy.forget('both ways', 'all');
  const order: string[] = [];
  const lose = async (runner: WorkerRunner, name: string) => {
    expect(await failure(runner.execute(PID))).toBeInstanceOf(NoAnswerError);
    order.push(name);
  };
  const longer = statements.of('sweeps', { leastMs: leastMs * 1.6 });
  await Promise.all([lose(stalled, 'after a stall'), lose(longer, 'with 1.6 times the least')]);
  expect(order).toEqual(['after a stall', 'with 1.6 times the least']);
});

test('what was lost and is not asked again is unanswered until another statement of its part is answered', async () => {
  const { db, pool, proxy } = await pooled();
  const statements = statementsOn(db);
  const [question, other] = [statements.of('settlements', LEAST), statements.of('settlements')];
  (await pool.connect()).release();
  proxy.forget('both ways', 'all');
  expect(await failure(question.execute(PID))).toBeInstanceOf(NoAnswerError);
  expect(statements.unansweredMs.settlements).toBeGreaterThanOrEqual(300);
  await other.execute(PID);
  expect(statements.unansweredMs.settlements).toBeUndefined();
});

test('postgres.js: where the connection that listens is as silent as the pool, another is opened', async () => {
  const proxy = await TcpProxy.start(Number(new URL(database.url).port));
  const client = postgres(proxy.url(database.url), { max: 1, fetch_types: false });
  onTestFinished(async () => {
    await proxy.close();
    await client.end({ timeout: 0 });
  });
  const db = drizzlePostgresJs({ client });
  const statements = statementsOn(db, db);
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const listening = new Promise<ListeningConnection | undefined>((ready) => {
    void listenOf(db)?.('wake_s', { ready, notify: () => undefined }, over.signal).catch(() => undefined);
  });
  const shared = (await listening) ?? expect.fail();
  const abandon = (reason: unknown) => {
    shared.destroy(reason);
    over.abort();
  };
  const own = new OwnConnection({ runner: shared.runner, signal: over.signal, abandon });
  statements.offer(own);
  await db.execute(PID);
  proxy.forget('to the client', 'all');
  expect(await failure(statements.of('claims', LEAST).execute(PID))).toBeInstanceOf(NoAnswerError);
  const order: string[] = [];
  const onListening = failure(statements.of('heartbeat').execute(PID)).then(() => order.push('lost'));
  // Before that one is known to be lost.
  await until(() => own.unansweredMs >= 1_000);
  expect(await statements.of('sweeps', { leastMs: 3_500 }).execute(PID)).toHaveLength(1);
  order.push('answered');
  await onListening;
  expect(order).toEqual(['answered', 'lost']);
});

test('a statement that fails after the end opens nothing, although its pool was ended meanwhile', async () => {
  let fail: (error: unknown) => void = () => undefined;
  const pool = { ending: false };
  const db = Object.create(database.db, {
    execute: { value: () => new Promise((_, reject) => (fail = reject)) },
    $client: { value: pool },
  });
  let opened = 0;
  let told = 0;
  const statements = new Statements({
    db,
    open: () => {
      opened++;
      return { opened: new Promise(() => undefined), close: () => undefined };
    },
    onRefused: () => undefined,
    onPoolEnded: () => told++,
  });
  const answer = failure(statements.of('claims').execute(PID));
  statements.end();
  pool.ending = true;
  fail(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
  expect(await answer).toBeInstanceOf(Error);
  expect([opened, told]).toEqual([0, 0]);
});
