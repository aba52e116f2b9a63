import { expect } from 'vitest';
import { allKinds } from './choices.ts';
import { enqueueing } from './enqueueing.ts';
import { claimGroups } from './group-claiming.ts';
import { limiting } from './limiting.ts';
import { living } from './living.ts';
import { inOrder } from './model-job.ts';
import { settling } from './settling.ts';
import type { World } from './world.ts';

/** Longer than any job waits, or any rate. */
const ROUND_MINUTES = 200;

/**
 * At the end of a walk all workers but one are gone, and what waits for somebody to act gets it. Then the jobs of the queues that
 * have groups run out, in no more rounds than there are jobs.
 */
export async function drain(
  world: World,
  { limitsRemoved }: { readonly limitsRemoved: boolean },
): Promise<void> {
  const { app, queue, model, workers, workerIds } = world;
  const { die } = living(world);
  const { lookAfterGroups, timePasses } = limiting(world);
  const { unpark } = enqueueing(world);
  const { settle } = settling(world);
  for (const name of model.groups.queues) {
    for (const index of workers.keys()) await die({ worker: index, sweep: undefined, byItself: false });
    const here = () => model.live.filter((job) => job.queue === name);
    if (limitsRemoved) {
      for (const { kind, group, override } of (await queue.limits.list(app.db, { queue: name })).limits) {
        if (override === undefined) continue;
        const of = kind !== undefined ? { kind } : group !== undefined ? { group } : {};
        await queue.limits.set(app.db, { queue: name, ...of }, null);
        model.groups.set(name, of, null, world.nowUs);
      }
    }
    // First, since it takes jobs into a group that may be stopped.
    await lookAfterGroups({ forgotten: false });
    for (const group of new Set(here().map(({ group }) => group))) {
      if (group === null || model.groups.declaredOf(name).groups === undefined) continue;
      await queue.limits.unblock(app.db, { queue: name, group });
      model.groups.unblock(name, group);
    }
    await world.compare();
    const isFar = ({ runAt }: { runAt: unknown }) => typeof runAt === 'number' && runAt > world.nowUs + 1e12;
    for (const { id, runAt } of here().sort(inOrder)) {
      if (runAt === Number.POSITIVE_INFINITY) {
        const job = [...model.jobs.keys()].indexOf(id);
        await unpark({ jobs: [job], parked: false });
      } else if (isFar({ runAt })) {
        model.cancel(id);
        await queue.cancel(app.db, id);
      }
    }
    const [worker = workers[0], workerId = 0] = [workers[0], workerIds[0]];
    if (worker === undefined) throw new Error('no worker');
    const claim = {
      queue: name,
      kinds: allKinds,
      limit: 20,
      sweep: true,
      folds: false,
      beginning: undefined,
    };
    const most = here().length + 2;
    for (let round = 0; here().length > 0; round++) {
      expect(
        round,
        `rounds in which ${here().map(({ id, group }) => `${id} of ${group}`)} do not run`,
      ).toBeLessThan(most);
      await timePasses({ minutes: ROUND_MINUTES });
      for (let before = -1; before !== here().length && here().length > 0; ) {
        before = here().length;
        await claimGroups(world, worker.db, claim, workerId);
        while (world.claims.unsettled.some((claimed) => claimed.queue === name)) {
          const index = world.claims.unsettled.findIndex((claimed) => claimed.queue === name);
          await settle({ attempt: index, ending: 'complete' });
        }
      }
    }
    world.saw('all jobs of groups have run');
  }
}
