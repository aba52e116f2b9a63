import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { step } from './happenings.ts';
import { Walk } from './walk.ts';

const WORKERS = 3;

/** The rarest event is seen ten times a round; so further rounds are for the unluckiest only. */
const MOST_ROUNDS = 4;

/** What all walks together must have met: a walk that never meets a case says nothing about it. */
const events = [
  'a claim reached its limit',
  'a completion rolled back',
  'a duplicate refused',
  'a job claimed beyond its attempts',
  'a job taken over from a worker that is gone',
  'a redrive refused for its key',
  'a stale settlement refused',
  'a worker came back',
  'a worker that is gone left alone what it holds',
  'a worker died holding jobs',
  'cancel: cancelled',
  'cancel: finished',
  'cancel: not-found',
  'cancel: requested',
  'claimed by a worker that is gone',
  'completed in a transaction',
  'jobs released',
  'redriven by id',
  'settled by a worker that is gone',
  'settled: cancel',
  'settled: complete',
  'settled: fail',
  'settled: fail for good',
  'settled: interrupt',
  'settled: snooze',
  'several claimed',
  'several pages listed',
  'several redriven',
  'several settled at once',
];

/** Of all lengths alike, so that half of the walks are long; a failing one is still made as short as it can be. */
const steps = fc.noBias(fc.array(step, { maxLength: 80, size: 'max' }));

describe('the lives of jobs', () => {
  const database = useTestDatabase({ max: 1 });
  const seen = new Set<string>();
  let workers: Connection[] = [];

  beforeAll(async () => {
    workers = await database.connect(WORKERS);
  });

  // A failure prints the seed and the shortest walk that fails: repeat it with `{ seed, path }` beside `numRuns`.
  test('whatever happens to them, the tables hold what the model says', { timeout: 180_000 }, async () => {
    const missing = () => events.filter((event) => !seen.has(event));
    for (let round = 0; round === 0 || (round < MOST_ROUNDS && missing().length > 0); round++) {
      await fc.assert(
        fc.asyncProperty(steps, async (walked) => {
          const walk = new Walk(database, workers, (event) => seen.add(event));
          await walk.begin();
          for (const one of walked) await walk.take(one);
        }),
        { numRuns: 200 },
      );
    }
    expect(missing()).toEqual([]);
  });
});
