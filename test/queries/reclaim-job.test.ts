import { beforeEach, expect, test } from 'vitest';
import { reclaimJob } from '../../src/core/queries/hold/reclaim-job.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, claim, clearTables, jobRow, tables } from './support/jobs.ts';
import { type Backend, begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

/** A claim whose transaction was rolled back; answers what it had claimed. */
async function claimInVain(backend: Backend) {
  await begin(backend);
  const [job] = await claim(backend.db, { workerId: null, fromGoneWorkers: true });
  await rollback(backend);
  if (job === undefined) throw new Error('nothing was claimed');
  return job;
}

test.each([
  ['that waited', {}],
  ['of a worker that is gone', { workerId: 9 }],
])(
  'gives a job %s the attempt and the fence of the first claim, so that it can be settled',
  async (_, given) => {
    const [one] = await twoBackends(database);
    const id = await addJob(database.client, { ...given, fence: 4, attempt: 2 });
    const job = await claimInVain(one);
    expect(job).toMatchObject({ id, fence: 5, attempt: 3 });
    await begin(one);
    expect(await reclaimJob(one.db, tables, job)).toEqual({ cancelReason: null });
    expect(await jobRow(one.client, id)).toMatchObject({ fence: 5, attempt: 3, worker_id: null });
    const ended = await finishJobs(one.db, tables, { queue: 'q', workerId: null }, [
      {
        id,
        fence: job.fence,
        transition: { type: 'finish', state: 'completed', output: null, error: null, keepResult: true },
      },
    ]);
    expect(ended).toEqual(new Set([id]));
    await commit(one);
  },
);

test('leaves a job that somebody has claimed since, and one of another queue', async () => {
  const [one] = await twoBackends(database);
  const id = await addJob(database.client);
  const job = await claimInVain(one);
  expect(await reclaimJob(one.db, tables, { ...job, queue: 'other' })).toBe(undefined);
  await claim(database.db, { workerId: 2 });
  expect(await reclaimJob(one.db, tables, job)).toBe(undefined);
  expect(await jobRow(database.client, id)).toMatchObject({ fence: 1, attempt: 1, worker_id: 2 });
});

test('waits for a claim that is open, and looks again', async () => {
  const [one, two] = await twoBackends(database);
  await addJob(database.client);
  const job = await claimInVain(two);
  for (const [end, expected] of [
    [rollback, { cancelReason: null }],
    [commit, undefined],
  ] as const) {
    await begin(one);
    await begin(two);
    await claim(one.db, { workerId: 2 });
    const reclaiming = reclaimJob(two.db, tables, job);
    await untilBlocked(database, two);
    await end(one);
    expect(await reclaiming).toEqual(expected);
    await rollback(two);
  }
});
