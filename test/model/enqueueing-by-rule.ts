import type { EnqueueResult, LimitedEnqueueResult } from 'drizzle-queue';
import { expect } from 'vitest';
import { HOUR_MS } from './choices.ts';
import { definitionOf } from './endings.ts';
import { dateOf, expectEnqueued, optionsOf } from './enqueueing.ts';
import type { Doings, Happenings } from './happenings.ts';
import { known, type ModelJob } from './model-job.ts';
import { unaware, type World } from './world.ts';

const DELAY_MS = HOUR_MS / 2;

type Rule = Happenings['enqueueByRule']['rule'];

/** How jobs are enqueued whose key is more than a unique one, or by a process that knows less. */
export function enqueueingByRule(world: World): Pick<Doings, 'enqueueByRule' | 'enqueueUnaware'> {
  const { app, queue, model, saw } = world;

  async function enqueue(
    job: Happenings['enqueue'],
    rule: Rule,
    key: string,
  ): Promise<EnqueueResult | LimitedEnqueueResult> {
    const definition = definitionOf(job.kind);
    const { uniqueKey: _, runAt, ...options } = { queue: job.queue, ...optionsOf(world, job) };
    const enqueue = (given: object) =>
      queue.enqueue(app.db, definition, undefined, { ...options, ...given }) as Promise<LimitedEnqueueResult>;
    switch (rule) {
      case 'debounce':
        return await enqueue({ debounce: { key, delayMs: DELAY_MS } });
      case 'debounce with a longest wait':
        return await enqueue({ debounce: { key, delayMs: DELAY_MS, maxWaitMs: HOUR_MS } });
      case 'replace':
        return await enqueue({ runAt, replace: { key } });
      case 'replace, but for the time':
        return await enqueue({ runAt, replace: { key, runAt: 'keep' } });
      case 'unique while it waits':
        return await enqueue({ runAt, uniqueKey: key, unique: 'waiting' });
      case 'unique for a time':
        return await enqueue({ runAt, uniqueKey: key, unique: { forMs: HOUR_MS } });
      case 'throttle':
        return await enqueue({ runAt, throttle: { key, perMs: HOUR_MS } });
    }
  }

  /** When a job is due that takes the place of this one. */
  async function newTime(job: Happenings['enqueue'], rule: Rule, old?: ModelJob): Promise<ModelJob['runAt']> {
    if (rule === 'debounce') return { delayMs: DELAY_MS };
    if (rule === 'debounce with a longest wait') {
      if (old === undefined) return { delayMs: DELAY_MS };
      const [row] = await app.client<{ us: string }[]>`
        select (extract(epoch from created_at) * 1000000)::int8 as us from queue_jobs where id = ${old.id}`;
      const latestUs = Number(row?.us) + HOUR_MS * 1_000;
      return world.nowUs + DELAY_MS * 1_000 < latestUs ? { delayMs: DELAY_MS } : latestUs;
    }
    if (rule === 'replace, but for the time' && old !== undefined) return old.runAt;
    const runAt = dateOf(job.due);
    return runAt === undefined ? { delayMs: 0 } : runAt.getTime() * 1_000;
  }

  async function enqueueOnce({ job, rule, key }: Omit<Happenings['enqueueByRule'], 'again'>): Promise<void> {
    // It goes by times that the model may not know yet.
    await world.compare();
    const { kind, priority, maxAttempts } = job;
    const grouping = model.groups.isGrouped(job.queue)
      ? { group: job.group ?? '-', cost: job.cost ?? 1 }
      : {};
    const answer = await enqueue(job, rule, key);
    const runsOut = rule === 'throttle' || rule === 'unique for a time';
    if (runsOut) {
      const isTaken = world.keys.isTaken([job.queue, kind, key], world.nowUs);
      if (isTaken) {
        const outcome = rule === 'throttle' ? 'throttled' : 'duplicate';
        expect(answer).toEqual({ id: undefined, duplicate: rule !== 'throttle', outcome });
        saw(`a key that is taken: ${outcome}`);
        return;
      }
      world.keys.take([job.queue, kind, key], world.nowUs, HOUR_MS);
    }
    const waits = (old: ModelJob) => old.queue === job.queue && old.kind === kind && old.waitingKey === key;
    const old = runsOut ? undefined : model.live.find(waits);
    if (old === undefined) {
      expect(answer).toMatchObject({ duplicate: false, outcome: 'enqueued' });
      const id = Number(answer.id);
      for (const known of model.jobs.keys()) expect(id, 'ids grow').toBeGreaterThan(known);
      const runAt = await newTime(job, rule);
      const waitingKey = runsOut ? null : key;
      model.enqueue({
        ...{ id, queue: job.queue, kind, priority, maxAttempts, uniqueKey: null, waitingKey, runAt },
        ...grouping,
      });
      return;
    }
    const replaces = rule !== 'unique while it waits';
    const outcome = replaces ? 'replaced' : 'duplicate';
    expect(answer).toEqual({ id: old.id, duplicate: !replaces, outcome });
    saw(`a key that is taken: ${outcome}`);
    if (!replaces) return;
    const runAt = await newTime(job, rule, old);
    if (typeof runAt === 'number' && runAt > known(old.runAt)) saw('a job put off');
    Object.assign(old, { priority, maxAttempts, runAt, ...grouping, fence: old.fence + 1 });
  }

  return {
    enqueueByRule: async ({ again, ...what }) => {
      await enqueueOnce(what);
      if (again) await enqueueOnce(what);
    },

    enqueueUnaware: async (job) => {
      const { group: _, cost: __, ...options } = { queue: job.queue, ...optionsOf(world, job) };
      const answer = await unaware.enqueue(app.db, definitionOf(job.kind), undefined, options);
      expectEnqueued(world, answer, job, { group: null, cost: 1 });
    },
  };
}
