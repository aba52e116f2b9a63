import { expect } from 'vitest';
import type { WorkflowDoings } from './workflow-happenings.ts';
import type { WorkflowWorld } from './workflow-world.ts';

/**
 * At the end of a walk everything happens that somebody or some worker does sooner or later: times pass, ends are counted, what is
 * missing is counted anew, signals are sent to those who wait for one. Then each job ends, and each batch with its last member.
 */
export async function drainWorkflows(world: WorkflowWorld, doings: WorkflowDoings): Promise<void> {
  const { model, workers } = world;
  for (const worker of workers.keys()) await doings.die({ worker });
  const most = model.live.length * 4 + 20;
  const isLeft = () => model.live.length > 0 || model.tallies.length > 0 || model.missing.size > 0;
  for (let round = 0; isLeft(); round++) {
    expect(round, `rounds in which ${JSON.stringify(model.live)} do not end`).toBeLessThan(most);
    await doings.timePasses({});
    for (const batch of [...model.batches.keys()].keys()) await doings.recount({ batch, twice: false });
    await doings.fold({ ids: undefined });
    await doings.endMembers({});
    await world.compare();
    for (const { id, run, waits } of model.live) {
      if (run !== 'never' || waits === 'flow') continue;
      // Of its waits one is enough.
      const wait = waits.find(({ type }) => type === 'signal');
      if (wait?.type !== 'signal') continue;
      const job = [...model.jobs.keys()].indexOf(id);
      await doings.signal({ job, waiting: false, signal: wait.signal as 'approval', key: undefined });
    }
    for (const queue of ['mail', 'slow'] as const)
      await doings.claim({ worker: 0, queue, sweep: true, limit: 100 });
    await world.compare();
    for (let left = world.attempts.length; left > 0 && world.attempt(0) !== undefined; left--)
      await doings.settle({ attempt: 0, stale: false, ending: 'complete' });
    await world.compare();
  }
  expect([...model.batches.values()].filter(({ ended, pending }) => !ended || pending !== 0)).toEqual([]);
  world.saw('all has ended');
}
