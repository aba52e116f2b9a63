import { expect } from 'vitest';
import { beatWorker } from '../../src/queries/beat-worker.ts';
import { registerWorker } from '../../src/queries/register-worker.ts';
import { removeWorker } from '../../src/queries/remove-worker.ts';
import { claim } from './claiming.ts';
import type { Doings } from './happenings.ts';
import { oneOf } from './one-of.ts';
import { tables, type World } from './world.ts';

/** A worker begins to live. */
export async function register(
  { workers, workerIds, everyWorkerId, model }: World,
  index: number,
): Promise<void> {
  const id = await registerWorker(oneOf(workers, index).db, tables, { name: `w${index}`, queues: [] });
  workerIds[index] = id;
  everyWorkerId.push(id);
  model.livingWorkers.add(id);
}

/** How workers die and come back. */
export function living(world: World): Pick<Doings, 'die' | 'beat'> {
  const { app, workers, workerIds, everyWorkerId, model, saw } = world;
  return {
    die: async ({ worker, sweep, byItself }) => {
      const id = oneOf(workerIds, worker);
      await removeWorker(app.db, tables, id);
      model.livingWorkers.delete(id);
      if (model.live.some(({ workerId }) => workerId === id)) saw('a worker died holding jobs');
      await register(world, worker % workers.length);
      if (sweep !== undefined) await claim(world, { ...sweep, sweep: true }, byItself ? id : undefined);
    },

    beat: async ({ worker }) => {
      const id = oneOf(everyWorkerId, worker);
      const wasGone = !model.livingWorkers.has(id);
      expect(await beatWorker(app.db, tables, { id, name: 'w', queues: [] })).toBe(wasGone);
      model.livingWorkers.add(id);
      if (wasGone) saw('a worker came back');
    },
  };
}
