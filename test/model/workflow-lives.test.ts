import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { depth, full } from '../support/depth.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { workflowDoings } from './workflow-doings.ts';
import { drainWorkflows } from './workflow-draining.ts';
import { type WorkflowStep, workflowStep } from './workflow-happenings.ts';
import { WorkflowWorld } from './workflow-world.ts';

const WORKERS = 3;
/** Most events are met in the first round, and the rarest in one of several. */
const MOST_ROUNDS = 12;

/** A round takes two to six minutes; none begins after these. */
const MOST_MS = 400_000;

/** What all walks together must have met: a walk that never meets a case says nothing about it. */
const events = [
  'a batch ended',
  'a batch has grown',
  'a batch has grown by a transaction that was open for a while',
  'a batch that another fold counts left alone',
  'a batch that does not grow',
  'a flow cancelled',
  'a flow enqueued',
  'a flow put back',
  'a flow without failures left as it is',
  'a fold rolled back',
  'a fold that was open for a while',
  'a fork of a job: cancelled',
  'a fork of a job: completed',
  'a fork of a job: discarded',
  'a fork of a job: held',
  'a fork of a job: live',
  'a fork that has children',
  'a fork that has received signals',
  'a fork that may ask for what its job had waited for',
  'a fork without children that ended later',
  'a fork without children that have not ended',
  'a held job cancelled by force',
  'a job cancelled',
  'a job claimed that has steps',
  'a job claimed that is to end',
  'a job of a flow cancelled for a failure',
  'a job of a flow made due',
  'a job put back',
  'a job taken over',
  'a job that waits until its deadline',
  'a job woken before it was parked',
  'a member ended by a transaction that was open for a while',
  'a member of an ended batch put back',
  'a parked job made due',
  'a redrive of a flow that was open for a while',
  'a row deleted by hand',
  'a signal has made a job due',
  'a signal of a transaction that was open for a while',
  'a signal waited for behind another wait',
  'a signal: late',
  'a signal: received',
  'a signal: waiting',
  'a job that was to end with its flow goes on',
  'a stale record refused',
  'a stale settlement refused',
  'a step recorded',
  'all has ended',
  'children enqueued',
  'children of a stale attempt refused',
  'finish: finished',
  'finish: gone',
  'finish: not-waiting',
  'finish: running',
  'members asked to end',
  'members counted that were gone',
  'parked: due',
  'parked: later',
  'parked: never',
  'redriven from a step: completed',
  'redriven from a step: redriven',
  'redriven from a step: running',
  'settled: cancel',
  'settled: complete',
  'settled: fail',
  'settled: fail for good',
  'settled: interrupt',
  'settled: snooze',
  'signal: duplicate',
  'signal: gone',
  'signal: sent',
  'steps recorded together',
  'waited for batches',
  'waited for batches, or a failure',
];

/** Of all lengths alike, so that half of the walks are long. */
const walks = fc.noBias(fc.array(workflowStep, { maxLength: 120, size: 'max' }));

describe('the lives of workflows', () => {
  const database = useTestDatabase({ max: 1 });
  const seen = new Set<string>();
  let transaction: Connection;
  let workers: Connection[] = [];

  beforeAll(async () => {
    // The model counts the claims of a job; the tables begin at the clock.
    await database.client`alter table queue_jobs alter column fence set default 0`;
    await addWorkflowTables(database);
    [transaction, ...workers] = (await database.connect(WORKERS + 1)) as [Connection, ...Connection[]];
  });

  async function walk(steps: readonly WorkflowStep[]): Promise<void> {
    await clearTables(database.client);
    await clearWorkflowTables(database);
    const world = new WorkflowWorld({ app: database, transaction, workers, saw: (event) => seen.add(event) });
    const doings = workflowDoings(world);
    const take = async ({ happens, to }: WorkflowStep) => {
      world.model.time++;
      // What it happens to belongs to what happens; TypeScript does not carry the pair through the lookup.
      await (doings[happens] as (to: unknown) => Promise<void>)(to);
      await world.compare();
    };
    world.takeAll = async (some) => {
      for (const one of some) await take(one);
    };
    for (const index of workers.keys()) await world.register(index);
    for (const step of steps) await take(step);
    await drainWorkflows(world, doings);
  }

  // For the shortest walk that fails see the test of the lives of jobs.
  test('whatever happens to them, nothing is lost, and nobody waits for ever', {
    timeout: 900_000,
  }, async () => {
    const missing = () => events.filter((event) => !seen.has(event));
    const rounds = full ? MOST_ROUNDS : 1;
    const startMs = performance.now();
    const mayGoOn = (round: number) => round < rounds && performance.now() - startMs < MOST_MS;
    for (let round = 0; round === 0 || (mayGoOn(round) && missing().length > 0); round++) {
      await fc.assert(fc.asyncProperty(walks, walk), {
        numRuns: depth(4, 60),
        endOnFailure: true,
      });
    }
    // A few walks cannot meet everything.
    if (full) expect(missing()).toEqual([]);
  });
});
