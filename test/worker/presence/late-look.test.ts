import { expect, onTestFinished, test } from 'vitest';
import { waitingFor } from '../../queries/support/locks.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { registered } from './registered.ts';

const database = useTestDatabase();

test('a look that was late ends a standstill also where it tells of a session that is lost', async () => {
  let returns = 0;
  const { workerId, liveness } = await registered(database, {
    // A worker whose row shows a session has less time to be seen than one without.
    reconnectMs: 100,
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
  const rows = await waitingFor(database.client, 'queue_workers');
  return rows.length > 0 ? 'waits' : undefined;
}
