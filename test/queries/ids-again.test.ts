import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Transition } from '../../src/core/job/transition.ts';
import type { ClaimedJob } from '../../src/core/queries/claim/claim-jobs.ts';
import { findHeldJobs } from '../../src/core/queries/hold/find-held-jobs.ts';
import { lockHeldJob } from '../../src/core/queries/hold/lock-held-jobs.ts';
import { findRequests } from '../../src/core/queries/presence/find-requests.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { writeProgress } from '../../src/core/queries/settle/write-progress.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { claim, clearTables, jobRow, tables } from './support/jobs.ts';

const database = useTestDatabase();
const queue = createQueue();
const send = defineJob('k', { queue: 'q', payload: unvalidated<{ to: string }>() });
const finish = {
  type: 'finish',
  state: 'completed',
  output: '"old"',
  error: null,
  keepResult: true,
} as const satisfies Transition;
const retry = { type: 'reschedule', delayMs: 0, attempt: 0, error: null } as const satisfies Transition;

beforeEach(() => clearTables(database.client));

describe.each([
  ['a worker', 1],
  ['runNext, which holds by the row’s lock', null],
])('an attempt of %s from before its job’s id came again', (_, workerId) => {
  const held = { queue: 'q', workerId };
  let old: ClaimedJob;
  let now: ClaimedJob;

  const enqueueAndClaim = async (to: string): Promise<ClaimedJob> => {
    await queue.enqueue(database.db, send, { to });
    const [job] = await claim(database.db, { workerId });
    if (job === undefined) throw new Error('nothing was claimed');
    return job;
  };

  beforeEach(async () => {
    old = await enqueueAndClaim('Ada');
    await database.client`truncate queue_jobs restart identity`;
    await database.client.unsafe(`alter table queue_jobs alter column id restart with ${old.id}`);
    now = await enqueueAndClaim('Grace');
    expect(now).toMatchObject({ id: old.id, payload: { to: 'Grace' }, attempt: old.attempt });
  });

  test('cannot end the new job, put it back, or write into it', async () => {
    const { db } = database;
    const before = await jobRow(database.client, now.id);
    expect(await finishJobs(db, tables, held, [{ ...old, transition: finish }])).toEqual(new Set());
    expect([...(await rescheduleJobs(db, tables, held, [{ ...old, transition: retry }])).keys()]).toEqual([]);
    expect(await writeProgress(db, tables, held, [{ ...old, progress: '1' }])).toEqual(new Set());
    expect(await db.transaction((tx) => lockHeldJob(tx, tables, held, old))).toBe('gone');
    expect(await findHeldJobs(db, tables, held, [old])).toEqual(new Map());
    expect(await jobRow(database.client, now.id)).toEqual(before);
    expect(await finishJobs(db, tables, held, [{ ...now, transition: finish }])).toEqual(new Set([now.id]));
  });

  test('does not hear that the end of the new job was asked for', async () => {
    await queue.cancel(database.db, now.id, { reason: 'unwanted' });
    const { jobs } = await findRequests(database.db, tables, {
      workerId: 1,
      queues: [],
      jobs: [{ ...old, queue: 'q' }],
    });
    expect(jobs).toEqual([{ id: old.id, fence: old.fence, held: false, cancelReason: null }]);
  });
});

test('a job that is enqueued, or inserted by hand, begins with the time of its insert as its fence', async () => {
  const { client, db } = database;
  const now = async () => {
    const [row] = await client<{ ms: number }[]>`
      select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as ms`;
    return row?.ms ?? Number.NaN;
  };
  const before = await now();
  await queue.enqueue(db, send, { to: 'Ada' });
  await queue.enqueueMany(db, send, [{ payload: { to: 'Grace' } }, { payload: { to: 'Edsger' } }]);
  await client`insert into queue_jobs (queue, kind, payload, max_attempts) values ('q', 'k', '{}', 1)`;
  const after = await now();
  const rows = await client<{ fence: number }[]>`select fence::float8 as fence from queue_jobs`;
  expect(rows).toHaveLength(4);
  for (const { fence } of rows) {
    expect(fence).toBeGreaterThanOrEqual(before);
    expect(fence).toBeLessThanOrEqual(after);
  }
});
