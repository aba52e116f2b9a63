import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { Retries } from '../../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { Bands } from '../../../src/core/worker/claim/bands.ts';
import { Lanes } from '../../../src/core/worker/claim/lanes.ts';
import { OverlookedJobs } from '../../../src/core/worker/claim/overlooked-jobs.ts';
import { Sweep } from '../../../src/core/worker/claim/sweep.ts';
import { Sweeper, type SweptQueue } from '../../../src/core/worker/claim/sweeper.ts';
import { addJob, clearTables, tables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
beforeEach(() => clearTables(database.client));

/** A sweeper that runs, and a queue of it whose claims have come up to now. */
function sweeping(crew = 1) {
  const sweeper = new Sweeper({
    runner: database.db,
    tables,
    workerId: 1,
    queues: () => [],
    idleMs: () => 3_600_000,
    crew: () => crew,
    events: new WorkerEmitter(),
    retries: new Retries(),
  });
  const bands = new Bands();
  bands.noteNothing(Date.now(), performance.now());
  const state = { quietMs: 0, paused: false };
  const queue: SweptQueue = {
    queue: 'mail',
    kinds: ['late'],
    bands,
    sweep: new Sweep(),
    overlooked: new OverlookedJobs(),
    get quietMs() {
      return state.quietMs;
    },
    attempts: {
      get paused() {
        return state.paused;
      },
    },
    wake: () => {},
  };
  const over = new AbortController();
  const running = sweeper.run(over.signal);
  onTestFinished(async () => {
    over.abort();
    await running;
  });
  return { sweeper, queue, state };
}

const addLate = async () => await addJob(database.client, { queue: 'mail', kind: 'late', dueInMs: -60_000 });

test('a queue where no job came for a while is swept at once when one comes', async () => {
  const { sweeper, queue, state } = sweeping();
  await addLate();
  // The next pass is due after a tenth of this.
  state.quietMs = 1_800_000;
  sweeper.awaken(queue);
  await until(() => queue.overlooked.size === 1);

  await addLate();
  state.quietMs = 0;
  sweeper.awaken(queue);
  await until(() => queue.overlooked.size === 2);
  expect(queue.sweep.ended).toBe(true);
});

test('a paused queue is asked about no more, and swept at once when it is resumed', async () => {
  const { sweeper, queue, state } = sweeping();
  await addLate();
  state.paused = true;
  const timers = vi.spyOn(globalThis, 'setTimeout');
  sweeper.awaken(queue);
  await new Promise(setImmediate);
  const sleeps = timers.mock.calls.map(([, ms]) => Number(ms));
  timers.mockRestore();
  expect(sleeps).toHaveLength(1);
  expect(Math.min(...sleeps)).toBeGreaterThan(60_000);
  expect(queue.overlooked.size).toBe(0);

  state.paused = false;
  queue.sweep.urge('newest first');
  sweeper.awaken(queue);
  await until(() => queue.overlooked.size > 0);
});

test('a worker that begins goes through all without pauses, unless peers sweep as well', () => {
  const attempts = { paused: false };
  const options = { queue: 'mail', quietMs: () => 0, agingMs: undefined, attempts, wake: () => undefined };
  const urgent = [1, 2].map((crew) => {
    const lanes = new Lanes(options, sweeping(crew).sweeper, ['late']);
    lanes.sweepFirst();
    return lanes.all.map(({ sweep }) => sweep.urgent);
  });
  expect(urgent).toEqual([[true], [false]]);
});
