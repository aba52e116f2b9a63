import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
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
/** Tells nobody of what is enqueued. */
const silent = createQueue({ wakeUps: false });
const heard = defineJob('heard', { queue: 'heard' });
const polled = defineJob('polled', { queue: 'polled' });
const survivor = defineJob('survivor', { queue: 'survivor' });

/** By polling alone, an idle worker would look after 45 to 75 s: within {@link patience} a job is started only if it was heard of. */
const SELDOM = 60_000;
const patience = { timeoutMs: 40_000 };
/** For what takes milliseconds, on a machine that is busy with other things. */
const atOnce = { timeoutMs: 20_000 };

/** A worker that listens, and whose queue is idle. */
async function listeningWorker(db: Database, job: JobDefinition, problems: unknown[]): Promise<Worker> {
  const worker = createWorker(db, {
    queue,
    log: false,
    handlers: [handle(job, () => {})],
    pollIntervalMs: SELDOM,
  });
  worker.on('error', (error) => problems.push(error));
  const ready = Promise.all([nextEvent(worker, 'listening'), nextEvent(worker, 'idle')]);
  await worker.start();
  await ready;
  return worker;
}

/**
 * Waits until the worker looks for jobs of its own accord no more, which it still does after it became idle: until one of which nobody was
 * told stays where it is. The next one that is told of brings both.
 */
async function atRest(enqueueSilently: () => Promise<number>, completed: readonly number[]): Promise<void> {
  for (let round = 0; round < 10; round++) {
    // It looks for 300 ms after the last job, and then once more.
    await delay(500);
    const id = await enqueueSilently();
    const found = await until(() => completed.includes(id), { timeoutMs: 1_000 }).catch(() => false);
    if (!found) return;
  }
  throw new Error('the worker finds jobs of which it was not told');
}

export const waking: readonly Behaviour[] = [
  {
    name: 'a worker that listens hears of a job at its commit',
    needs: ['listening'],
    async run({ db }) {
      const problems: unknown[] = [];
      const worker = await listeningWorker(db, heard, problems);
      const completed: number[] = [];
      worker.on('completed', ({ job }) => completed.push(job.id));
      try {
        await atRest(async () => (await silent.enqueue(db, heard)).id, completed);
        const { id } = await queue.enqueue(db, heard);
        await until(() => completed.includes(id), atOnce);
      } finally {
        await worker.stop();
      }
      assert.deepEqual(problems, []);
    },
  },
  {
    name: 'a worker that cannot listen says so once, and polls',
    needs: ['no listening'],
    async run({ db }) {
      for (let round = 0; round < 2; round++) {
        const worker = createWorker(db, { queue, log: false, handlers: [handle(polled, () => {})] });
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
      const enqueue = async (by = queue) => {
        const enqueued = await until(() => by.enqueue(db, survivor).catch(() => undefined), patience);
        return enqueued?.id ?? 0;
      };
      // The first two may be found by a look: when the loss was noticed, and when the worker listens again. The third is heard of.
      for (let round = 1; round <= 3; round++) {
        if (round === 3) await atRest(() => enqueue(silent), completed);
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
