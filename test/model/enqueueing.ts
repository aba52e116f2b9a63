import type { EnqueueResult } from 'drizzle-queue';
import { expect } from 'vitest';
import { unparkJobs } from '../../src/features/workflows/queries/unpark-jobs.ts';
import { definitionOf } from './endings.ts';
import { NO_GROUP } from './group-model.ts';
import type { Doings, Happenings } from './happenings.ts';
import type { ModelJob } from './model-job.ts';
import { oneOf } from './one-of.ts';
import type { World } from './world.ts';

const LONG_AGO = Date.UTC(1990, 0, 1);
const FAR_AHEAD = Date.UTC(2090, 0, 1);

/** How jobs are enqueued, and become due. */
export function enqueueing(
  world: World,
): Pick<Doings, 'enqueue' | 'enqueueMany' | 'enqueueWhile' | 'unpark' | 'makeDue'> {
  const { app, queue, tables, model, saw } = world;

  function enqueue(job: Happenings['enqueue']): Promise<EnqueueResult> {
    return queue.enqueue(app.db, definitionOf(job.kind), undefined, {
      queue: job.queue,
      ...optionsOf(world, job),
    });
  }

  return {
    enqueue: async (job) => {
      expectEnqueued(world, await enqueue(job), job);
    },

    enqueueMany: async ({ queue: name, kind, entries }) => {
      const options = entries.map((entry) => ({
        queue: name,
        ...optionsOf(world, { ...entry, queue: name }),
      }));
      const enqueued = await queue.enqueueMany(app.db, definitionOf(kind), options);
      expect(enqueued).toHaveLength(entries.length);
      for (const [index, entry] of entries.entries())
        expectEnqueued(world, oneOf(enqueued, index), { ...entry, queue: name, kind });
    },

    enqueueWhile: async ({ job, refused, nobodyStands }) => {
      // Once each: were the key to come and go at every try, the enqueue would rightly give up.
      const steps = { refused: [...refused], nobodyStands: [...nobodyStands] };
      const enqueued = await world.interrupted(() => enqueue(job), {
        'enqueue: refused': () => world.takeAll(steps.refused.splice(0)),
        'enqueue: nobody stands': () => world.takeAll(steps.nobodyStands.splice(0)),
      });
      expectEnqueued(world, enqueued, job);
    },

    unpark: async ({ jobs, parked }) => {
      // It goes by times that the model may not know yet.
      await world.compare();
      const isParked = ({ state, runAt }: ModelJob) => state === 'live' && runAt === Number.POSITIVE_INFINITY;
      const chosen = jobs.flatMap((index) => world.anyJob(index, parked ? isParked : undefined) ?? []);
      const [first] = chosen;
      if (first === undefined) return;
      const ids = chosen.map(({ id }) => id);
      if (chosen.some((job) => isParked(job) && job.queue === first.queue)) saw('a parked job unparked');
      const expected = model.unpark(first.queue, ids, world.nowUs);
      expect(
        await unparkJobs(app.db, tables, { queue: first.queue, ids, onlyWaiting: false, channel: undefined }),
      ).toEqual(expected);
      if (chosen.some(({ id, unparked }) => unparked && expected.has(id)))
        saw('a job unparked while it is held');
    },

    makeDue: async ({ job: index, longAgo }) => {
      // By hand it would leave no note: in queues with groups time passes instead.
      const waiting = model.live.filter(
        ({ workerId, queue }) => workerId === null && !model.groups.isGrouped(queue),
      );
      if (waiting.length === 0) return;
      const job = oneOf(waiting, index);
      const runAt = new Date(LONG_AGO + longAgo * 1_000);
      await app.client`update queue_jobs set run_at = ${runAt.toISOString()} where id = ${job.id}`;
      job.runAt = runAt.getTime() * 1_000;
    },
  };
}

/** What an enqueue without a rule has done. */
export function expectEnqueued(
  { model, saw }: World,
  { id, duplicate }: EnqueueResult,
  job: Happenings['enqueue'],
  grouping: Partial<Pick<ModelJob, 'group' | 'cost'>> = {},
): void {
  const { queue, kind, priority, maxAttempts, uniqueKey = null, due, cost } = job;
  const standing = model.standing(queue, kind, uniqueKey);
  expect(duplicate).toBe(standing !== undefined);
  if (standing !== undefined) {
    expect(id).toBe(standing.id);
    saw('a duplicate refused');
    return;
  }
  for (const known of model.jobs.keys()) expect(id, 'ids grow').toBeGreaterThan(known);
  const runAt = dateOf(due);
  model.enqueue({
    ...{ id, queue, kind, priority, maxAttempts, uniqueKey },
    ...(model.groups.isGrouped(queue) && { group: job.group ?? NO_GROUP, cost: cost ?? 1 }),
    ...grouping,
    runAt: runAt === undefined ? { delayMs: 0 } : runAt.getTime() * 1_000,
  });
}

export function optionsOf(
  { model }: World,
  { queue, uniqueKey, priority, maxAttempts, due, group, cost }: Omit<Happenings['enqueue'], 'kind'>,
) {
  const grouping = model.groups.isGrouped(queue) ? { group, cost } : {};
  return { uniqueKey, priority, maxAttempts, runAt: dateOf(due), ...grouping };
}

export function dateOf(due: Happenings['enqueue']['due']): Date | undefined {
  if (due === 'now') return undefined;
  return new Date('longAgo' in due ? LONG_AGO + due.longAgo * 1_000 : FAR_AHEAD + due.farAhead * 1_000);
}
