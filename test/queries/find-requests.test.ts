import { beforeEach, describe, expect, test } from 'vitest';
import { pauseQueue } from '../../src/core/queries/operate/pause-queue.ts';
import { requestCancel } from '../../src/core/queries/operate/request-cancel.ts';
import { findRequests, findRequestsQuery } from '../../src/core/queries/presence/find-requests.ts';
import { cancelJob } from '../../src/core/queries/settle/cancel-job.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { explain, nodesOf } from './support/explain.ts';
import { addJob, addJobs, clearTables, fillJobs, tables } from './support/jobs.ts';
import { twoBackends } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const find = (ids: readonly number[], queues: readonly string[] = ['q'], fence = 3) =>
  findRequests(database.db, tables, {
    workerId: 1,
    queues,
    jobs: ids.map((id) => ({ id, fence, queue: 'q' })),
  });
const reason = { attempt: 1, name: 'Cancelled', message: 'not wanted' };

describe('findRequests', () => {
  test('says nothing of jobs that are held and wanted', async () => {
    const ids = await addJobs(database.client, [
      { workerId: 1, fence: 3 },
      { workerId: 1, fence: 3 },
    ]);
    expect(await find(ids)).toEqual({ paused: new Set(), jobs: [] });
    expect(await find([])).toEqual({ paused: new Set(), jobs: [] });
  });

  test('finds the jobs whose end is asked for, and why', async () => {
    const [one, two] = await addJobs(database.client, [
      { workerId: 1, fence: 3 },
      { workerId: 1, fence: 3 },
    ]);
    await requestCancel(database.db, tables, { id: two, queue: 'q', reason: 'why', channel: undefined });
    expect((await find([one, two])).jobs).toEqual([{ id: two, fence: 3, held: true, cancelReason: 'why' }]);
  });

  test.each([
    ['another worker holds', { workerId: 2, fence: 3 }],
    ['was claimed again', { workerId: 1, fence: 4 }],
    ['nobody holds', { fence: 3 }],
    ['is of another queue', { workerId: 1, fence: 3, queue: 'other' }],
  ])('finds that a job which %s is not held', async (_, job) => {
    const id = await addJob(database.client, job);
    await database.client`update queue_jobs set cancel_reason = 'of somebody else'`;
    expect((await find([id])).jobs).toEqual([{ id, fence: 3, held: false, cancelReason: null }]);
  });

  test('tells a job that was cancelled by force from one that has ended otherwise', async () => {
    const [forced, completed, gone] = await addJobs(database.client, [
      { workerId: 1, fence: 3 },
      { workerId: 1, fence: 3 },
      { workerId: 1, fence: 3 },
    ]);
    await cancelJob(database.db, tables, { id: forced, queue: 'q', reason, force: { channel: undefined } });
    const finish = { type: 'finish', state: 'completed', output: null, error: null } as const;
    await finishJobs(database.db, tables, { queue: 'q', workerId: 1 }, [
      { id: completed, fence: 3, transition: { ...finish, keepResult: true } },
      { id: gone, fence: 3, transition: { ...finish, keepResult: false } },
    ]);
    const { jobs } = await find([forced, completed, gone]);
    expect([...jobs].sort((a, b) => a.id - b.id)).toEqual([
      { id: forced, fence: 3, held: false, cancelReason: 'not wanted' },
      { id: completed, fence: 3, held: false, cancelReason: null },
      { id: gone, fence: 3, held: false, cancelReason: null },
    ]);
  });

  test('finds pauses of the queues that are asked for, with jobs or without', async () => {
    for (const queue of ['q', 'r', 'not mine'])
      await pauseQueue(database.db, tables, { queue, channel: undefined });
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    expect((await find([], ['q', 'r', 's'])).paused).toEqual(new Set(['q', 'r']));
    expect((await find([id], ['q', 's'])).paused).toEqual(new Set(['q']));
  });

  test('looks jobs up by their keys, however many others there are', async () => {
    await database.client`alter table queue_jobs set (autovacuum_enabled = off)`;
    await fillJobs(database.client, 20_000);
    const rows = await database.client<{ id: string }[]>`
      update queue_jobs set worker_id = 1, fence = 3 where id in (select id from queue_jobs order by id limit 100) returning id`;
    const [backend] = await twoBackends(database);
    const query = findRequestsQuery(tables, {
      workerId: 1,
      queues: ['q'],
      jobs: rows.map(({ id }) => ({ id: Number(id), fence: 3, queue: 'q' })),
    });
    for (const analysed of [false, true]) {
      if (analysed) await database.client`analyze queue_jobs`;
      for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
        const nodes = nodesOf(await explain(backend, query, mode));
        const scans = nodes.filter((node) => node['Relation Name'] === 'queue_jobs');
        expect(scans.map((node) => node['Index Name'])).toEqual(['queue_jobs_pkey']);
      }
    }
  });
});
