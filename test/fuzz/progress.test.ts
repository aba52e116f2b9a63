import { createQueue, createWorker, defineJob, type HandlerContext, handle } from 'drizzle-queue';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { UnstorableValueError } from '../../src/core/job/stored-json.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { useCanary } from './canary.ts';
import * as hostile from './hostile.ts';
import { attempt, BOTH, holds } from './refusal.ts';

const database = useTestDatabase();
useCanary(database);
const queue = createQueue();
const work = defineJob('work');

/** So many run at once: a few writes a second are for all of them together. */
const RUNNING = 40;

test('job.progress takes any value, or the worker says what is wrong with it', {
  timeout: 240_000,
}, async () => {
  const jobs: HandlerContext<typeof work>['job'][] = [];
  const refused = new Map<number, unknown>();
  const others: unknown[] = [];
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const worker = createWorker(database.db, {
    queue,
    queues: { default: { concurrency: RUNNING } },
    handlers: [
      handle(work, async ({ job }) => {
        jobs.push(job);
        await finished;
      }),
    ],
  });
  worker.on('error', ({ error, during }) => {
    const [, id] = /^the progress of job (\d+) /.exec(during) ?? [];
    if (id === undefined) others.push(error);
    else refused.set(Number(id), error);
  });
  onTestFinished(async () => {
    finish();
    await worker.stop();
  });
  await worker.start();
  await queue.enqueueMany(database.db, work, new Array(RUNNING).fill({}));
  await until(() => jobs.length === RUNNING);

  const seen = new Set<string>();
  const values = fc.array(hostile.value, { minLength: RUNNING, maxLength: RUNNING });
  let round = 0;
  await holds(
    fc.asyncProperty(values, async (values) => {
      refused.clear();
      round++;
      for (const [index, job] of jobs.entries()) {
        // Never throws; and the round tells a value from the one before.
        job.progress([round, values[index]]);
        const error = refused.get(job.id);
        // It names the place in the value; which job it was the event says beside.
        if (error instanceof UnstorableValueError) seen.add('refused');
        else seen.add(await attempt(() => error && Promise.reject(error)));
      }
      const accepted = jobs.filter(({ id }) => !refused.has(id));
      const written = async (): Promise<unknown> =>
        (
          await database.client`select count(*)::int as n from queue_jobs where progress ->> 0 = ${String(round)}`
        )[0]?.n;
      await until(async () => (await written()) === accepted.length);
      const shown = new Map(
        (await queue.list(database.db, { limit: RUNNING })).jobs.map((job) => [job.id, job]),
      );
      for (const [index, { id }] of jobs.entries()) {
        if (refused.has(id)) continue;
        const [, value] = JSON.parse(JSON.stringify([round, values[index]]));
        expect(shown.get(id)).toMatchObject({ progress: [round, value] });
      }
      expect(others).toEqual([]);
    }),
    25,
  );
  expect([...seen].sort()).toEqual(BOTH);
});
