import fc from 'fast-check';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import type { DeclaredQueueLimits } from '../../src/features/limits/settings/limit-settings.ts';
import { addControlTables } from '../support/control-tables.ts';
import { depth, full } from '../support/depth.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { HOUR_MS } from './choices.ts';
import { resetClock, shareClock } from './clock.ts';
import { groupStep } from './happenings.ts';
import { Walk } from './walk.ts';

const WORKERS = 3;

/** Most events are met in the first round, and the rarest in one of several. */
const MOST_ROUNDS = 10;
/** A round takes one to four minutes; none begins after these. */
const MOST_MS = 300_000;
/** What a busy machine may not get to in that time: each is met by one walk in thirty, or fewer. */
const rare: ReadonlySet<string> = new Set([
  'a group listed that is stopped',
  'a group unblocked',
  'a worker came back and has lost jobs',
  'a worker came back and still holds jobs',
  'cancel: locked',
  'cancelled as it was put back',
  'redriven by id',
  'several redriven',
]);

/** The limits of the queue 'mail', one of which a walk goes by. */
const limits: Readonly<Record<string, DeclaredQueueLimits>> = {
  'shares alone': { groups: {} },
  'one of each group': { groups: { concurrency: 1 } },
  'two of each group': { groups: { concurrency: 2 } },
  'one after the other': { groups: { serial: 'attempt' } },
  'in order': { groups: { serial: 'end' } },
  'in order, with success': { groups: { serial: 'success' } },
  'a rate of each group': { groups: { concurrency: 2, rate: { limit: 4, perMs: HOUR_MS } } },
  'in order, by a rate of each group': { groups: { serial: 'end', rate: { limit: 3, perMs: HOUR_MS } } },
};

/** What all walks together must have met: a walk that never meets a case says nothing about it. */
const events = [
  'a claim beside others',
  'a claim rolled back',
  'a claim that took nothing of what may start',
  'a completion rolled back',
  'a group listed that is stopped',
  'a group listed that runs',
  'a group unblocked',
  'a job of a group taken over',
  'a job unparked while it is held',
  'a key that is taken: duplicate',
  'a key that is taken: replaced',
  'a key that is taken: throttled',
  'a limit not set',
  'a limit removed',
  'a limit set',
  'a row locked by a transaction of the app',
  'a tick fired',
  'a cost counted',
  'a worker came back and has lost jobs',
  'a worker came back and still holds jobs',
  'a worker died holding jobs',
  'all jobs of groups have run',
  'cancel: locked',
  'cancelled as it was put back',
  'claimed by a worker that is gone',
  'completed in a transaction',
  'in between: claim: answered',
  'in between: settle: finished',
  'in between: settle: parked',
  'in between: settle: written',
  'jobs adopted',
  'jobs of a lost answer given back',
  'jobs released',
  'redriven by id',
  'several claimed of groups',
  'several redriven',
  'settled: fail',
  'settled: fail for good',
  'settled: interrupt',
  'settled: snooze',
  'settled: wait',
  'while a transaction is open',
];

const walks = fc.record({
  /** Groups that only a success lets go on are the rarest to be stopped and let go on. */
  by: fc.constantFrom(...Object.keys(limits), 'in order, with success'),
  /** Of all lengths alike, so that half of the walks are long. */
  steps: fc.noBias(fc.array(groupStep, { maxLength: 80, size: 'max' })),
  limitsRemoved: fc.boolean(),
});

describe('the lives of jobs in groups', () => {
  const database = useTestDatabase({ max: 1 });
  const seen = new Set<string>();
  let transaction: Connection;
  let workers: Connection[] = [];

  beforeAll(async () => {
    // The model counts the claims of a job; the tables begin at the clock.
    await database.client`alter table queue_jobs alter column fence set default 0`;
    await addControlTables(database);
    [transaction, ...workers] = (await database.connect(WORKERS + 1)) as [Connection, ...Connection[]];
    await shareClock([database, transaction, ...workers]);
  });

  afterEach(() => atFaultPoints());

  // For the shortest walk that fails see the test of the lives of jobs without groups.
  test('whatever happens, no limit is passed, and no job is left behind', { timeout: 900_000 }, async () => {
    const missing = () => events.filter((event) => !seen.has(event));
    const rounds = full ? MOST_ROUNDS : 1;
    const startMs = performance.now();
    const mayGoOn = (round: number) => round < rounds && performance.now() - startMs < MOST_MS;
    for (let round = 0; round === 0 || (mayGoOn(round) && missing().length > 0); round++) {
      await fc.assert(
        fc.asyncProperty(walks, async ({ by, steps, limitsRemoved }) => {
          await resetClock(database);
          const saw = (event: string) => seen.add(event);
          const mail = limits[by] ?? {};
          const walk = new Walk({ app: database, transaction, workers, saw, limits: { mail } });
          await walk.begin();
          for (const step of steps) await walk.take(step);
          await walk.end({ limitsRemoved });
        }),
        { numRuns: depth(8, 75), endOnFailure: true },
      );
    }
    // A few walks cannot meet everything.
    if (full) expect(missing().filter((event) => mayGoOn(0) || !rare.has(event))).toEqual([]);
  });
});
