import { expect, onTestFinished, test } from 'vitest';
import { registerWorker } from '../../../src/core/queries/presence/register-worker.ts';
import { Deadlines } from '../../../src/core/time/deadlines.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { Liveness } from '../../../src/core/worker/presence/liveness.ts';
import { tables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();

test('a look that was late ends a standstill also where it tells of a session that is lost', async () => {
  const { db } = database;
  const worker = { name: 'w', queues: ['default'], kinds: ['work'] };
  const workerId = await registerWorker(db, tables, worker);
  let returns = 0;
  const liveness = new Liveness({
    db,
    tables,
    workerId,
    ...worker,
    // A worker whose row shows a session has less time to be seen than one without.
    silentMs: 30_000,
    frozenMs: 60_000,
    reconnectMs: 100,
    events: new WorkerEmitter(),
    deadlines: new Deadlines(),
    hasJobs: () => false,
    onSilence: () => {},
    onDeclaredGone: async () => {},
    onOthersGone: () => {},
    onOtherServer: () => undefined,
    onReturn: () => void returns++,
  });
  const shown = async () => {
    const [row] = await database.client<{ shows: boolean }[]>`
      select session is not null as shows from queue_workers where id = ${workerId}`;
    return row?.shows;
  };
  const [connection = database] = await database.connect();
  const session = new AbortController();
  onTestFinished(() => session.abort());
  liveness.holdSession({
    runner: connection.db,
    signal: session.signal,
    abandon: (reason) => session.abort(reason),
  });
  await until(async () => {
    await liveness.look();
    return await shown();
  });
  expect(liveness.isCutOff).toBe(false);

  session.abort();
  const [blocking = database] = await database.connect();
  let look: Promise<number> | undefined;
  await blocking.client.begin(async (tx) => {
    await tx`select from queue_workers for update`;
    // Looks go by without a beat for as long as another session may replace the lost one.
    await until(async () => {
      look ??= liveness.look();
      const isOver = await Promise.race([look.then(() => true), waitsForLock()]);
      if (isOver === true) look = undefined;
      return isOver === 'waits';
    });
    await until(() => liveness.isCutOff);
    expect(returns).toBe(0);
  });
  await look;
  expect(await shown()).toBe(false);
  expect(liveness.isCutOff).toBe(false);
  expect(returns).toBe(1);
});

async function waitsForLock(): Promise<'waits' | undefined> {
  const rows = await database.client`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%queue_workers%'`;
  return rows.length > 0 ? 'waits' : undefined;
}
