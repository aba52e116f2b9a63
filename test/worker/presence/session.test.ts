import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { unlockSession } from '../../../src/core/queries/presence/unlock-session.ts';
import { queryRows, type Runner } from '../../../src/core/sql/executor.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { Session } from '../../../src/core/worker/presence/session.ts';
import { tables } from '../../queries/support/jobs.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const pid = sql`select pg_backend_pid() as pid`;

/** A session on a connection of its own, whose answers can be kept back, as by a network that has died. */
async function openSession(workerId: number) {
  const [connection = database] = await database.connect();
  const errors: unknown[] = [];
  const events = new WorkerEmitter();
  events.on('error', ({ error }) => errors.push(error));
  let silent = false;
  let failure: Error | undefined;
  let changes = 0;
  let refusals = 0;
  const runner: Runner = {
    execute: async (query) => {
      if (failure !== undefined) throw failure;
      const answer = await connection.db.execute(query);
      return silent ? new Promise(() => {}) : answer;
    },
  };
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const { db } = database;
  const session = new Session({
    ...{ db, tables, events },
    onChange: () => void changes++,
    onRefused: () => void refusals++,
  });
  const proven = { runner, signal: over.signal, abandon: (reason: unknown) => over.abort(reason) };
  const [row] = await queryRows(connection.db, tables, pid);
  return {
    session,
    connection,
    errors,
    over,
    pid: row?.pid,
    hold: () => session.hold(proven, workerId),
    keepBackAnswers: () => {
      silent = true;
    },
    failWith: (error: Error) => {
      failure = error;
    },
    get changes() {
      return changes;
    },
    get refusals() {
      return refusals;
    },
  };
}

async function pidOf(runner: Runner): Promise<unknown> {
  const [row] = await queryRows(runner, tables, pid);
  return row?.pid;
}

test('statements run on its connection while it holds the lock, and on the pool when it does not', async () => {
  const opened = await openSession(1);
  const { session, over } = opened;
  expect(await pidOf(session.runner)).not.toBe(opened.pid);
  await opened.hold();
  expect([session.pid, opened.changes]).toEqual([opened.pid, 1]);
  expect(await pidOf(session.runner)).toBe(opened.pid);
  over.abort(new Error('lost'));
  expect([session.pid, opened.changes]).toEqual([undefined, 2]);
  expect(await pidOf(session.runner)).not.toBe(opened.pid);
});

test('it waits until the connection that the worker had before is gone, without blocking its own', async () => {
  const before = await openSession(2);
  await before.hold();
  const opened = await openSession(2);
  let held = false;
  const holding = opened.hold().then(() => {
    held = true;
  });
  expect(await pidOf(opened.connection.db)).toBe(opened.pid);
  expect(held).toBe(false);
  await unlockSession(before.connection.db, tables, 2);
  await holding;
  expect(opened.session.pid).toBe(opened.pid);
});

test('a statement that is not answered is repeated on the pool within seconds, and the connection given up', async () => {
  const opened = await openSession(3);
  const { session, over } = opened;
  await opened.hold();
  opened.keepBackAnswers();
  expect(await pidOf(session.runner)).not.toBe(opened.pid);
  // From now on it is not asked.
  const asked = pidOf(session.runner);
  expect(await runningMsUntil(asked)).toBeLessThan(900);
  expect(await asked).not.toBe(opened.pid);
  await until(() => over.signal.aborted);
  expect(over.signal.reason).toMatchObject({
    message: expect.stringMatching(/has not answered for 5000 ms/),
  });
  expect(session.pid).toBeUndefined();
});

test('a lock that others find free is lost; on its own connection it always looks free', async () => {
  const opened = await openSession(7);
  await opened.hold();
  opened.session.noteUnlocked(Number(opened.pid));
  expect(opened.session.pid).toBe(opened.pid);
  opened.session.noteUnlocked(Number(opened.pid) + 1);
  expect(opened.session.pid).toBeUndefined();
  expect(opened.over.signal.reason).toMatchObject({ message: expect.stringMatching(/no longer held/) });
});

test('an answer that has come while the event loop was blocked is not late', async () => {
  const opened = await openSession(4);
  await opened.hold();
  const asked = pidOf(opened.session.runner);
  const until = performance.now() + 3_000;
  while (performance.now() < until);
  expect(await asked).toBe(opened.pid);
});

test('an error of the connection gives it up; one of the statement is the caller’s', async () => {
  const opened = await openSession(5);
  const { session, over } = opened;
  await opened.hold();
  await expect(queryRows(session.runner, tables, sql`select 1 / 0`)).rejects.toThrow();
  expect(session.pid).toBe(opened.pid);
  opened.failWith(Object.assign(new Error('terminating connection'), { code: '57P01' }));
  expect(await pidOf(session.runner)).not.toBe(opened.pid);
  expect(over.signal.reason).toMatchObject({ code: '57P01' });
});

test('a connection that refuses the lock is reported, and the worker goes on without a session', async () => {
  const opened = await openSession(6);
  opened.failWith(Object.assign(new Error('permission denied'), { code: '42501' }));
  await opened.hold();
  expect(opened.session.pid).toBeUndefined();
  expect(opened.errors).toMatchObject([{ code: '42501' }]);
  expect(opened.refusals).toBe(1);
  expect(await pidOf(opened.session.runner)).not.toBe(opened.pid);
});
