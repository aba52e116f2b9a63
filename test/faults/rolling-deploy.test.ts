import { createQueue } from 'drizzle-queue';
import { queueJobs, queueResults } from 'drizzle-queue/schema';
import { afterEach, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startWorkerProcess, type WorkerProcess } from '../worker/worker-process.ts';
import { caption, crop, resize } from './fixtures/deploy-jobs.ts';

const database = useTestDatabase();
const queue = createQueue();
const processes: WorkerProcess[] = [];
afterEach(async () => {
  await Promise.all(
    processes.filter(({ child }) => child.exitCode === null).map((worker) => worker.end('SIGKILL')),
  );
});

async function start(version: 'old' | 'new'): Promise<WorkerProcess> {
  const worker = startWorkerProcess('faults/fixtures/deploy-worker.ts', {
    DATABASE_URL: database.url,
    VERSION: version,
  });
  processes.push(worker);
  await worker.printed('started');
  return worker;
}

const entries = (count: number) => Array.from({ length: count }, () => ({}));
const narrow = (count: number) => entries(count).map((_, width) => ({ payload: { width } }));
const sized = (count: number) =>
  entries(count).map((_, width) => ({ payload: { size: { width, height: 1 } } }));

/** Each start of a handler, as its process has printed it: by which version, and `kind/id/fence`. Both have ended. */
async function starts(old: WorkerProcess, now: WorkerProcess): Promise<{ version: string; start: string }[]> {
  // What was printed last may be read after the end of the process was seen.
  await until(() => [old, now].every(({ child }) => child.stdout?.readableEnded));
  return [
    { version: 'old', worker: old },
    { version: 'new', worker: now },
  ].flatMap(({ version, worker }) =>
    [...worker.output().matchAll(/^begun (.+)$/gm)].map(([, start = '']) => ({ version, start })),
  );
}

function results() {
  return database.db.select().from(queueResults).orderBy(queueResults.jobId);
}

test('old and new workers side by side: unknown kinds wait, and what the old one refuses the new one does', {
  timeout: 120_000,
}, async () => {
  const { db } = database;
  const old = await start('old');
  await queue.enqueueMany(db, caption, entries(10));
  await queue.enqueueMany(db, resize.old, narrow(20));
  await queue.enqueueMany(db, crop, entries(10));
  await until(async () => (await results()).length === 30);
  // Nobody has touched what nobody knows, although it stands before all others.
  const waiting = await db.select().from(queueJobs);
  expect(waiting.map(({ kind, attempt, workerId }) => ({ kind, attempt, workerId }))).toEqual(
    entries(10).map(() => ({ kind: 'caption', attempt: 0, workerId: null })),
  );

  // The new version of the app enqueues before its worker is there: the old worker refuses what it does not understand.
  await queue.enqueueMany(db, resize.new, sized(10));
  await until(async () => {
    const [job] = await db.select().from(queueJobs).orderBy(queueJobs.id).offset(10).limit(1);
    return job !== undefined && job.errors.length > 0;
  });

  const now = await start('new');
  await queue.enqueueMany(db, resize.new, [...narrow(100), ...sized(100)]);
  await queue.enqueueMany(db, crop, entries(20));
  await until(async () => (await db.$count(queueJobs)) === 0);

  // The old one leaves in the middle of its work, and the new one does what is left.
  await queue.enqueueMany(db, resize.new, [...narrow(300), ...sized(300)]);
  expect(await old.end('SIGTERM')).toBe(0);
  await until(async () => (await db.$count(queueJobs)) === 0);
  expect(await now.end('SIGTERM')).toBe(0);

  const all = await results();
  expect(all).toHaveLength(10 + 20 + 10 + 10 + 200 + 20 + 600);
  expect(new Set(all.map(({ state }) => state))).toEqual(new Set(['completed']));
  const doneBy = (choose: (result: (typeof all)[number]) => boolean) =>
    [...new Set(all.filter(choose).map(({ output }) => output))].sort();
  expect(doneBy(({ kind }) => kind === 'caption')).toEqual(['new']);
  expect(doneBy(({ kind }) => kind === 'crop')).toEqual(['old']);
  expect(doneBy(({ payload }) => JSON.stringify(payload).includes('size'))).toEqual(['new']);
  expect(doneBy(({ kind }) => kind === 'resize')).toEqual(['new', 'old']);
  // Each job began once, under the fence of its result and in the version that has done it: nothing crashed, so nothing ran again.
  const begun = (await starts(old, now)).map(({ version, start }) => `${start} by ${version}`);
  const ended = all.map(({ kind, jobId, fence, output }) => `${kind}/${jobId}/${fence} by ${output}`);
  expect(begun.sort()).toEqual(ended.sort());
  const errors = all.flatMap((result) => result.errors);
  expect(errors.length).toBeGreaterThanOrEqual(10);
  expect(new Set(errors.map(({ name }) => name))).toEqual(new Set(['InvalidPayloadError']));
});
