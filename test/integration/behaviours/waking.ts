import assert from 'node:assert/strict';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  handle,
  type JobDefinition,
  type Worker,
} from 'drizzle-queue';
import { until } from '../../support/until.ts';
import { nextEvent } from '../../worker/next-event.ts';
import type { Behaviour } from './behaviour.ts';
import { warnings } from './warnings.ts';

const queue = createQueue();
const heard = defineJob('heard', { queue: 'heard' });
const polled = defineJob('polled', { queue: 'polled' });
const survivor = defineJob('survivor', { queue: 'survivor' });

/** By polling alone, a job would start after a minute, which no behaviour waits for. */
const SELDOM = 60_000;
const patience = { timeoutMs: 40_000 };

/** A worker that listens, and whose queue is idle. */
async function listeningWorker(db: Database, job: JobDefinition, problems: unknown[]): Promise<Worker> {
  const worker = createWorker(db, { queue, handlers: [handle(job, () => {})], pollIntervalMs: SELDOM });
  worker.on('error', (error) => problems.push(error));
  const ready = Promise.all([nextEvent(worker, 'listening'), nextEvent(worker, 'idle')]);
  await worker.start();
  await ready;
  return worker;
}

export const waking: readonly Behaviour[] = [
  {
    name: 'a worker that listens hears of a job at its commit',
    needs: ['listening'],
    async run({ db }) {
      const problems: unknown[] = [];
      const worker = await listeningWorker(db, heard, problems);
      const completed = nextEvent(worker, 'completed');
      const { id } = await queue.enqueue(db, heard);
      const [{ job }] = await completed;
      await worker.stop();
      assert.equal(job.id, id);
      assert.deepEqual(problems, []);
    },
  },
  {
    name: 'a worker that cannot listen says so once, and polls',
    needs: ['no listening'],
    async run({ db }) {
      for (let round = 0; round < 2; round++) {
        const worker = createWorker(db, { queue, handlers: [handle(polled, () => {})] });
        const polling = nextEvent(worker, 'polling');
        const completed = nextEvent(worker, 'completed');
        await worker.start();
        assert.deepEqual(await polling, [{ error: undefined }]);
        await queue.enqueue(db, polled);
        await completed;
        await worker.stop();
      }
      assert.equal(warnings.length, 1, warnings.join('\n'));
      assert.match(warnings[0] ?? '', /cannot listen.*poll/);
    },
  },
  {
    name: 'loses all its connections, comes back, and hears again',
    needs: ['listening', 'server'],
    async run({ db, endConnections }) {
      const problems: unknown[] = [];
      const worker = await listeningWorker(db, survivor, problems);
      const completed: number[] = [];
      worker.on('completed', ({ job }) => completed.push(job.id));
      assert.ok((await endConnections()) > 1);
      // What the app itself sends on a connection that was lost is the app's to repeat.
      const enqueue = async () => {
        const enqueued = await until(() => queue.enqueue(db, survivor).catch(() => undefined), patience);
        return enqueued?.id ?? 0;
      };
      // The first two may be found by a look: when the loss was noticed, and when the worker listens again. The third is heard of.
      for (let round = 1; round <= 3; round++) {
        const idle = nextEvent(worker, 'idle');
        const id = await enqueue();
        await until(() => completed.includes(id), patience);
        await idle;
      }
      await worker.stop();
      const { jobs } = await queue.list(db, { job: survivor });
      assert.equal(new Set(completed).size, completed.length, 'a job was completed twice');
      for (const job of jobs) assert.equal(job.state, 'completed');
    },
  },
];
