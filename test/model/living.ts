import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { findHeldJobs } from '../../src/core/queries/hold/find-held-jobs.ts';
import { beatWorker } from '../../src/core/queries/presence/beat-worker.ts';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { removeWorker } from '../../src/core/queries/presence/remove-worker.ts';
import { Deadlines } from '../../src/core/time/deadlines.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { Liveness } from '../../src/core/worker/presence/liveness.ts';
import { claim } from './claiming.ts';
import type { Doings } from './happenings.ts';
import type { ModelJob } from './model-job.ts';
import { oneOf } from './one-of.ts';
import type { World } from './world.ts';

/** A worker begins to live. */
export async function register(
  { tables, workers, workerIds, everyWorkerId, model }: World,
  index: number,
): Promise<void> {
  const id = await registerWorker(oneOf(workers, index).db, tables, { name: `w${index}`, queues: [] });
  workerIds[index] = id;
  everyWorkerId.push(id);
  model.livingWorkers.add(id);
}

/** How workers die and come back. */
export function living(world: World): Pick<Doings, 'die' | 'beat' | 'comeBack' | 'lockRow'> {
  const { app, tables, transaction, workers, workerIds, everyWorkerId, model, claims, saw } = world;
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

    comeBack: async ({ worker, returned, asked }) => {
      // Rather one that was declared gone while it held jobs.
      const cut = claims.unsettled.flatMap(({ workerId }) =>
        model.livingWorkers.has(workerId) ? [] : workerId,
      );
      const id = oneOf(cut.length > 0 ? cut : everyWorkerId, worker);
      const wasGone = !model.livingWorkers.has(id);
      let isTold = false;
      const endLost = async () => {
        isTold = true;
        const mine = claims.unsettled.filter(({ workerId }) => workerId === id);
        const [first] = mine;
        if (first === undefined) return;
        const here = mine.filter((claimed) => claimed.queue === first.queue);
        const held = await findHeldJobs(app.db, tables, first, here);
        const lost = here.filter(({ id, fence }) => held.get(id) !== fence);
        for (const claimed of here) expect(model.holds(claimed)).toBe(!lost.includes(claimed));
        // It says nothing of what is claimed before it is heard.
        await world.takeAll(asked);
        for (const claimed of lost) {
          expect(model.holds(claimed), 'what was lost is never held again').toBe(false);
          claims.settle(claimed);
        }
        saw(
          lost.length > 0
            ? 'a worker came back and has lost jobs'
            : 'a worker came back and still holds jobs',
        );
      };
      const events = new WorkerEmitter();
      const failures: unknown[] = [];
      events.on('error', ({ error }) => failures.push(error));
      const liveness = new Liveness({
        db: app.db,
        deadlines: new Deadlines(),
        onSilence: () => undefined,
        tables,
        workerId: id,
        name: 'w',
        queues: [],
        kinds: [],
        // Nobody dies of silence in a walk.
        silentMs: 1e9,
        frozenMs: 1e9,
        reconnectMs: 1e9,
        events,
        hasJobs: () => false,
        onDeclaredGone: endLost,
        onOthersGone: () => undefined,
        onOtherServer: () => undefined,
        onReturn: () => undefined,
      });
      await world.interrupted(() => liveness.look(), {
        'liveness: returned': async () => {
          model.livingWorkers.add(id);
          await world.takeAll(returned);
        },
      });
      expect(failures).toEqual([]);
      expect(isTold).toBe(wasGone);
    },

    lockRow: async ({ job, held, commit, locked }) => {
      const isHeld = ({ state, workerId }: ModelJob) => state === 'live' && (workerId !== null || !held);
      const id = world.anyJob(job, isHeld)?.id;
      if (id === undefined) return;
      const undo = new Error('undo');
      const working = transaction.db.transaction(async (tx) => {
        await tx.execute(sql`select id from queue_jobs where id = ${id} for update`);
        await world.whileLocked([id], locked);
        if (!commit) throw undo;
      });
      if (commit) await working;
      else await expect(working).rejects.toBe(undo);
      saw('a row locked by a transaction of the app');
    },
  };
}
