import { queueJobs, queueResults } from 'drizzle-queue/schema';
import { expect, test } from 'vitest';
import type { Transition } from '../../src/core/job/transition.ts';
import { findHeldJobs } from '../../src/core/queries/hold/find-held-jobs.ts';
import { reclaimJob } from '../../src/core/queries/hold/reclaim-job.ts';
import { redriveJobs } from '../../src/core/queries/operate/redrive-jobs.ts';
import { findRequests } from '../../src/core/queries/presence/find-requests.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { writeProgress } from '../../src/core/queries/settle/write-progress.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, claim, tables } from './support/jobs.ts';

const database = useTestDatabase();
const held = { queue: 'q', workerId: 1 };

test('a fence goes on beyond 2^31, as a job that snoozes for ever will bring it there', async () => {
  const { db, client } = database;
  const id = await addJob(client, { fence: 2 ** 31 - 1 });
  const snooze = { type: 'reschedule', delayMs: 0, attempt: 0, error: null } as const satisfies Transition;
  const discard = {
    type: 'finish',
    state: 'discarded',
    output: null,
    error: null,
    keepResult: true,
  } as const satisfies Transition;

  const [first] = await claim(db);
  const fence = 2 ** 31;
  expect(first).toMatchObject({ id, fence });
  expect(await findHeldJobs(db, tables, held, [{ id, fence }])).toEqual(new Map([[id, fence]]));
  expect(await writeProgress(db, tables, held, [{ id, fence, progress: '1' }])).toEqual(new Set([id]));
  const { jobs } = await findRequests(db, tables, {
    workerId: 1,
    queues: ['q'],
    jobs: [{ id, fence: fence - 1, queue: 'q' }],
  });
  expect(jobs).toMatchObject([{ id, fence: fence - 1, held: false }]);
  expect([...(await rescheduleJobs(db, tables, held, [{ id, fence, transition: snooze }])).keys()]).toEqual([
    id,
  ]);

  const [second] = await claim(db);
  expect(second).toMatchObject({ id, fence: fence + 1 });
  expect(await finishJobs(db, tables, held, [{ id, fence, transition: discard }])).toEqual(new Set());
  expect(await finishJobs(db, tables, held, [{ id, fence: fence + 1, transition: discard }])).toEqual(
    new Set([id]),
  );
  expect(await db.select({ fence: queueResults.fence }).from(queueResults)).toEqual([{ fence: fence + 1 }]);
  await redriveJobs(db, tables, { id });
  expect(await db.select({ fence: queueJobs.fence }).from(queueJobs)).toEqual([{ fence: fence + 1 }]);
  expect(await reclaimJob(db, tables, { id, queue: 'q', attempt: 1, fence: fence + 2 })).toEqual({
    cancelReason: null,
  });
});
