import { expect } from 'vitest';
import { pruneResults } from '../../src/core/queries/operate/prune-results.ts';
import type { Doings } from './happenings.ts';
import type { ModelJob } from './model-job.ts';
import type { World } from './world.ts';

/** What is done to jobs from outside: cancelling, redriving, looking, pruning. */
export function inspecting(
  world: World,
): Pick<Doings, 'cancel' | 'cancelWhile' | 'redriveOne' | 'redriveMany' | 'look' | 'prune'> {
  const { app, queue, tables, model, saw } = world;
  return {
    cancel: async ({ job, keyed }) => {
      const waits = ({ state, uniqueKey, workerId }: ModelJob) =>
        state === 'live' && uniqueKey !== null && workerId === null;
      const id = world.anyJob(job, keyed ? waits : undefined)?.id;
      if (id === undefined) return;
      const answer = model.cancel(id);
      expect(await queue.cancel(app.db, id)).toEqual(cancelResult(answer));
      saw(`cancel: ${answer}`);
    },

    cancelWhile: async ({ job, found, notWaiting }) => {
      const id = world.anyJob(job)?.id;
      if (id === undefined) return;
      const stateOf = () => model.jobs.get(id)?.state;
      const before = stateOf();
      let expected = before === 'gone' ? 'not-found' : 'finished';
      /** Whether somebody holds it; the library looks again where this changes under its hands. */
      const isHeld = () => model.live.some((job) => job.id === id && job.workerId !== null);
      const waits = () => stateOf() === 'live' && !isHeld();
      const first = { found, notWaiting };
      const answer = await world.interrupted(() => queue.cancel(app.db, id), {
        'cancel: found': async () => {
          await world.takeAll(first.found);
          first.found = [];
          if (waits()) expected = model.cancel(id);
        },
        'cancel: not waiting': async () => {
          await world.takeAll(first.notWaiting);
          first.notWaiting = [];
          if (isHeld()) expected = model.cancel(id);
        },
      });
      expect(answer).toEqual(cancelResult(expected));
      if (before === 'live') saw(`cancel of a live job: ${expected}`);
    },

    redriveOne: async ({ job, discarded }) => {
      const id = world.anyJob(job, discarded ? ({ state }) => state === 'discarded' : undefined)?.id;
      if (id === undefined) return;
      const expected = model.redrive((other) => other.id === id, 1);
      expect(await queue.redrive(app.db, id)).toEqual(expected);
      if (expected.redriven > 0) saw('redriven by id');
      if (expected.duplicates > 0) saw('a redrive refused for its key');
    },

    redriveMany: async ({ queue: name, limit }) => {
      const inQueue = (job: ModelJob) => name === undefined || job.queue === name;
      const expected = model.redrive(inQueue, limit ?? Number.POSITIVE_INFINITY);
      const which = name === undefined ? ({ all: true } as const) : { queue: name };
      const filter = limit === undefined ? which : { ...which, limit };
      expect(await queue.redrive(app.db, filter)).toEqual(expected);
      if (expected.redriven > 1) saw('several redriven');
      if (expected.duplicates > 0) saw('a redrive refused for its key');
    },

    look: async ({ job: index, page }) => {
      const job = world.anyJob(index);
      if (job === undefined) return;
      // A state goes by times that the model may not know yet.
      await world.compare();
      expect((await queue.find(app.db, job.id))?.state ?? 'gone').toBe(model.stateOf(job, world.nowUs));
      const listed: unknown[] = [];
      let cursor: number | undefined;
      do {
        const { jobs, nextCursor } = await queue.list(app.db, { limit: page, cursor });
        listed.push(...jobs.map(({ id, state }) => ({ id, state })));
        cursor = nextCursor;
      } while (cursor !== undefined);
      const expected = [...model.jobs.values()]
        .filter(({ state }) => state !== 'gone')
        .sort((a, b) => b.id - a.id)
        .map((job) => ({ id: job.id, state: model.stateOf(job, world.nowUs) }));
      expect(listed).toEqual(expected);
      if (expected.length > page) saw('several pages listed');
    },

    prune: async () => {
      expect((await pruneResults(app.db, tables, { retentionMs: 0, limit: 1_000 })).pruned).toBe(
        model.prune(),
      );
    },
  };
}

/** What the library answers where the model says this. */
function cancelResult(answer: string): object {
  if (answer === 'cancelled') return { cancelled: true };
  return answer === 'requested' ? { cancelled: 'requested' } : { cancelled: false, reason: answer };
}
