import fc from 'fast-check';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { addControlTables } from '../support/control-tables.ts';
import { depth, full } from '../support/depth.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { step } from './happenings.ts';
import { Walk } from './walk.ts';

const WORKERS = 3;

/** Most events are met in the first round, and the rarest in one of several. */
const MOST_ROUNDS = 16;

/** What all walks together must have met: a walk that never meets a case says nothing about it. */
const events = [
  'a claim reached its limit',
  'a declaration that waits for a tick',
  'a declared schedule that is not set',
  'a job of a schedule that must not overlap',
  'a schedule that has changed is not fired',
  'a schedule: pause',
  'a schedule: resume',
  'a tick fired',
  'in between: schedules: found',
  'several ticks fired',
  'a completion rolled back',
  'a duplicate refused',
  'a job left alone that a transaction has locked',
  'a job claimed beyond its attempts',
  'a job claimed without beginning',
  'a last attempt begun by its claim',
  'a job taken over that had not begun',
  'a job that is not held does not begin',
  'begun',
  'a job taken over from a worker that is gone',
  'a job unparked while it is held',
  'a locked job does not begin',
  'a locked job left unsettled',
  'a lost answer found out',
  'a lost answer found out after another claim',
  'a parked job unparked',
  'a redrive refused for its key',
  'a row locked by a transaction of the app',
  'a stale settlement refused',
  'a worker came back',
  'a worker came back and has lost jobs',
  'a worker came back and still holds jobs',
  'a worker that is gone left alone what it holds',
  'a worker died holding jobs',
  'an answer lost while settling',
  'cancel: cancelled',
  'cancel: finished',
  'cancel: not-found',
  'cancel: requested',
  'cancelled as it was put back',
  'cancelled instead of discarded',
  'cancel of a live job: cancelled',
  'cancel of a live job: finished',
  'cancel of a live job: requested',
  'claimed by a worker that is gone',
  'completed in a transaction',
  'in between: cancel: found',
  'in between: cancel: not waiting',
  'in between: claim: answered',
  'in between: enqueue: nobody stands',
  'in between: enqueue: refused',
  'in between: liveness: returned',
  'in between: runNext: ran',
  'in between: settle: finished',
  'in between: settle: parked',
  'in between: settle: written',
  'jobs of a lost answer given back',
  'jobs released',
  'redriven by id',
  'run in one transaction: cancelled',
  'run in one transaction: completed',
  'run in one transaction: failed',
  'run in one transaction: snoozed',
  'settled by a worker that is gone',
  'settled: cancel',
  'settled: complete',
  'settled: fail',
  'settled: fail for good',
  'settled: interrupt',
  'settled: snooze',
  'settled: wait',
  'settled: wait for a time',
  'settled without waiting',
  'several claimed',
  'several pages listed',
  'several redriven',
  'several settled at once',
  'while a transaction is open',
  'woken before it was parked',
];

/** Of all lengths alike, so that half of the walks are long. */
const steps = fc.noBias(fc.array(step, { maxLength: 80, size: 'max' }));

describe('the lives of jobs', () => {
  const database = useTestDatabase({ max: 1 });
  const seen = new Set<string>();
  let transaction: Connection;
  let workers: Connection[] = [];

  beforeAll(async () => {
    // The model counts the claims of a job; the tables begin at the clock.
    await database.client`alter table queue_jobs alter column fence set default 0`;
    await addControlTables(database);
    [transaction, ...workers] = (await database.connect(WORKERS + 1)) as [Connection, ...Connection[]];
  });

  afterEach(() => atFaultPoints());

  // A failure prints its seed and path, and the walk as it was: to make it shorter takes many walks, longer than a run of all tests
  // may. For the shortest that fails, put the printed `seed` and `path` beside `numRuns`, leave out `endOnFailure`, and raise the
  // timeout.
  test('whatever happens to them, the tables hold what the model says', { timeout: 900_000 }, async () => {
    const missing = () => events.filter((event) => !seen.has(event));
    const rounds = full ? MOST_ROUNDS : 1;
    for (let round = 0; round === 0 || (round < rounds && missing().length > 0); round++) {
      await fc.assert(
        fc.asyncProperty(steps, async (walked) => {
          const walk = new Walk({ app: database, transaction, workers, saw: (event) => seen.add(event) });
          await walk.begin();
          for (const one of walked) await walk.take(one);
        }),
        { numRuns: depth(20, 100), endOnFailure: true },
      );
    }
    // A few walks cannot meet everything.
    if (full) expect(missing()).toEqual([]);
  });
});
