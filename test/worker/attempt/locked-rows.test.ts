import {
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handle,
  unvalidated,
  type Worker,
} from 'drizzle-queue';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Transition } from '../../../src/core/job/transition.ts';
import { Retries } from '../../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { Settler } from '../../../src/core/worker/settle/settle.ts';
import { addJobs, clearTables, resultRow, tables } from '../../queries/support/jobs.ts';
import { begin, commit, rollback, twoBackends } from '../../queries/support/locks.ts';
import { onThisServer } from '../../support/citus.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables });
const work = defineJob('work', { queue: 'q', payload: unvalidated<number>() });
const slow = defineJob('slow', {
  queue: 'q',
  payload: unvalidated<'completes' | 'fails'>(),
  backoff: fixedBackoff(3_600_000),
});
const finish = {
  type: 'finish',
  state: 'completed',
  output: '1',
  error: null,
  keepResult: true,
} as const satisfies Transition;

beforeEach(() => clearTables(database.client));

function newSettler(): Settler {
  return new Settler({
    db: database.db,
    tables: onThisServer(tables),
    holder: { queue: 'q', workerId: 1 },
    events: new WorkerEmitter(),
    retries: new Retries(),
    giveUp: new AbortController().signal,
  });
}

describe('jobs whose rows a transaction of the app has locked', () => {
  test('cost only themselves, and are settled when it is over, with its cancel', async () => {
    const [app] = await twoBackends(database);
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const worker: Worker = createWorker(database.db, {
      queue,
      queues: { q: { concurrency: 10 } },
      handlers: [
        handle(work, () => undefined),
        handle(slow, async ({ payload }) => {
          await released;
          if (payload === 'fails') throw new Error('no');
        }),
      ],
    });
    const ended: string[] = [];
    let completed = 0;
    worker.on('completed', ({ job }) => (job.kind === 'work' ? completed++ : ended.push('completed')));
    worker.on('cancelled', ({ reason }) => ended.push(`cancelled: ${reason}`));
    worker.on('lost', () => ended.push('lost'));
    const [completes, fails] = await queue.enqueueMany(database.db, slow, [
      { payload: 'completes' },
      { payload: 'fails' },
    ]);
    const ids = [completes?.id ?? 0, fails?.id ?? 0] as const;
    await worker.start();
    await until(async () => (await queue.list(database.db, { state: 'running' })).jobs.length === 2);

    await begin(app);
    for (const id of ids)
      expect(await queue.cancel(app.db, id, { reason: 'unwanted' })).toEqual({ cancelled: 'requested' });
    release();
    // Many settlements, while the rows of two are locked.
    for (let round = 1; round <= 20; round++) {
      await queue.enqueueMany(
        database.db,
        work,
        Array.from({ length: 10 }, (_, payload) => ({ payload })),
      );
      await until(() => completed === round * 10);
    }
    expect(ended).toEqual([]);
    await commit(app);
    await until(() => ended.length === 2);
    expect(ended.sort()).toEqual(['cancelled: unwanted', 'completed']);
    await worker.stop();
    expect(await queue.find(database.db, ids[0])).toMatchObject({ state: 'completed' });
    expect(await queue.find(database.db, ids[1])).toMatchObject({
      state: 'cancelled',
      errors: [{ message: 'no' }, { message: 'unwanted' }],
    });
  });

  test('make no deadlock with an enqueue that waits for the unique key of another', async () => {
    const [app, other] = await twoBackends(database);
    const [keyed, locked] = await addJobs(database.client, [
      { workerId: 1, kind: 'work', uniqueKey: 'key' },
      { workerId: 1, kind: 'work' },
    ]);
    await begin(app);
    await queue.cancel(app.db, locked);
    const settler = newSettler();
    let settled = false;
    const first = settler.settle({ id: keyed, fence: 0, transition: finish }).then((answer) => {
      settled = true;
      return answer;
    });
    const second = settler.settle({ id: locked, fence: 0, transition: finish });
    // The batch has deleted the first row, and waits for the second.
    await until(async () => {
      const [row] = await other.client<{ blocked: boolean }[]>`
        select count(*) > 0 as blocked from pg_stat_activity where ${app.pid} = any(pg_blocking_pids(pid))`;
      return row?.blocked || settled;
    });
    await queue.enqueue(app.db, work, 1, { uniqueKey: 'key' });
    expect(await first).toBe('written');
    await commit(app);
    expect(await second).toBe('written');
    expect(await resultRow(database.client, locked)).toMatchObject({ state: 'completed' });
  });

  test('are told as lost when that transaction has taken them away', async () => {
    const [app] = await twoBackends(database);
    const [taken, kept] = await addJobs(database.client, [{ workerId: 1 }, { workerId: 1 }]);
    await begin(app);
    await app.client`delete from queue_jobs where queue = 'q' and id = ${taken}`;
    await app.client`select from queue_jobs where queue = 'q' and id = ${kept} for update`;
    const settler = newSettler();
    const answers = [taken, kept].map((id) => settler.settle({ id, fence: 0, transition: finish }));
    // Beside them, one that is free.
    const [free] = await addJobs(database.client, [{ workerId: 1 }]);
    expect(await settler.settle({ id: free, fence: 0, transition: finish })).toBe('written');
    await commit(app);
    expect(await Promise.all(answers)).toEqual(['lost', 'written']);
    await settler.idle();
  });

  test('by a reader of the app with a foreign key to them, are ended when it is over', async () => {
    const [app] = await twoBackends(database);
    const [id] = await addJobs(database.client, [{ workerId: 1 }]);
    await begin(app);
    await app.client`select from queue_jobs where queue = 'q' and id = ${id} for key share`;
    const settler = newSettler();
    const answer = settler.settle({ id, fence: 0, transition: finish });
    const [free] = await addJobs(database.client, [{ workerId: 1 }]);
    expect(await settler.settle({ id: free, fence: 0, transition: finish })).toBe('written');
    await rollback(app);
    expect(await answer).toBe('written');
  });
});
