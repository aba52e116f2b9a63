import { describe, expect, test } from 'vitest';
import { gate } from '../../support/gate.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import {
  database,
  openPool,
  queue,
  sessionHeld,
  sleep,
  startProcess,
  startWorker,
  untilSeen,
  useObservedWorkers,
  workerRow,
} from './observed-workers.ts';

useObservedWorkers();

describe('a worker process', () => {
  test('that is killed loses its jobs to others within 5 seconds, and is declared gone once', async () => {
    const { process, id, jobId } = await startProcess('sleeps', () => queue.enqueue(database.db, sleep));
    const survivors = [await startWorker(), await startWorker()];
    const completed = Promise.race(survivors.map(({ worker }) => nextEvent(worker, 'completed')));
    await process.end('SIGKILL');
    const tookMs = await runningMsUntil(completed);
    expect(await queue.find(database.db, jobId)).toMatchObject({ state: 'completed', output: 2 });
    expect(survivors.flatMap(({ gone }) => gone)).toEqual([id]);
    expect(tookMs).toBeLessThan(5_000);
  });
});

describe('a session', () => {
  test('is kept while a stopping worker lets its handlers finish, and gone with it', async () => {
    const held = gate();
    const one = await startWorker(() => held.opened);
    const claimed = nextEvent(one.worker, 'claimed');
    const { id: jobId } = await queue.enqueue(database.db, sleep);
    await claimed;
    const peer = await startWorker(undefined, { reconnectMs: 1_000 });
    const stopping = one.worker.stop();
    await untilSeen(one.id);
    expect(await sessionHeld(one.id)).toBe(true);
    held.open();
    await stopping;
    expect(await queue.find(database.db, jobId)).toMatchObject({ state: 'completed', attempt: 1 });
    expect(await workerRow(one.id)).toBeUndefined();
    await until(async () => !(await sessionHeld(one.id)));
    expect(peer.gone).toEqual([]);
  });

  test('shows that the worker lives also when the app holds all connections of its pool', async () => {
    const db = openPool(2);
    const one = await startWorker(undefined, { db });
    const over = gate();
    const holding = [1, 2].map(() => db.transaction(() => over.opened));
    await untilSeen(one.id, 2);
    over.open();
    await Promise.all(holding);
  });

  test('is nothing that a worker has which does not listen', async () => {
    const one = await startWorker(undefined, { listen: false });
    await untilSeen(one.id);
    expect(await workerRow(one.id)).toMatchObject({ session: false });
    expect(await sessionHeld(one.id)).toBe(false);
  });
});
