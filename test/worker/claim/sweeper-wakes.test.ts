import { expect, onTestFinished, test } from 'vitest';
import { Retries } from '../../../src/time/retries.ts';
import { WorkerEmitter } from '../../../src/worker/attempt/events.ts';
import { Bands } from '../../../src/worker/claim/bands.ts';
import { OverlookedJobs } from '../../../src/worker/claim/overlooked-jobs.ts';
import { Sweep } from '../../../src/worker/claim/sweep.ts';
import { Sweeper, type SweptQueue } from '../../../src/worker/claim/sweeper.ts';
import { addJob, tables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();

test('a queue where no job came for a while is swept at once when one comes', async () => {
  const sweeper = new Sweeper({
    runner: database.db,
    tables,
    workerId: 1,
    idleMs: () => 3_600_000,
    crew: () => 1,
    events: new WorkerEmitter(),
    retries: new Retries(),
  });
  const bands = new Bands();
  bands.noteNothing(Date.now(), performance.now());
  const clock = { quietMs: 0 };
  const queue: SweptQueue = {
    queue: 'mail',
    kinds: ['late'],
    bands,
    sweep: new Sweep(),
    overlooked: new OverlookedJobs(),
    get quietMs() {
      return clock.quietMs;
    },
    attempts: { paused: false },
    wake: () => {},
  };
  const over = new AbortController();
  const running = sweeper.run(over.signal);
  onTestFinished(async () => {
    over.abort();
    await running;
  });
  const late = async () => await addJob(database.client, { queue: 'mail', kind: 'late', dueInMs: -60_000 });

  await late();
  // The next pass is due after a tenth of this.
  clock.quietMs = 1_800_000;
  sweeper.awaken(queue);
  await until(() => queue.overlooked.size === 1);

  await late();
  clock.quietMs = 0;
  sweeper.awaken(queue);
  await until(() => queue.overlooked.size === 2);
  expect(queue.sweep.ended).toBe(true);
});
