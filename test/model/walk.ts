import { createQueue, defineJob, type Enqueued, fixedBackoff, NonRetryableError } from 'drizzle-queue';
import { queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { expect } from 'vitest';
import type { Outcome } from '../../src/job/outcome.ts';
import { type Finish, type Reschedule, type Transition, transitionFor } from '../../src/job/transition.ts';
import { beatWorker } from '../../src/queries/beat-worker.ts';
import { type ClaimedJob, claimJobs } from '../../src/queries/claim-jobs.ts';
import { findHeldJobs } from '../../src/queries/find-held-jobs.ts';
import { finishJobs } from '../../src/queries/finish-jobs.ts';
import { pruneResults } from '../../src/queries/prune-results.ts';
import { registerWorker } from '../../src/queries/register-worker.ts';
import { releaseJobs } from '../../src/queries/release-jobs.ts';
import { removeWorker } from '../../src/queries/remove-worker.ts';
import { rescheduleJobs } from '../../src/queries/reschedule-jobs.ts';
import type { Connection } from '../support/test-database.ts';
import type { Happenings, Step } from './happenings.ts';
import {
  BACKOFF_MS,
  type Ending,
  JobModel,
  KIND_WITHOUT_RESULT,
  type ModelAttempt,
  type ModelJob,
  SNOOZE_MS,
} from './job-model.ts';
import { expectAsModelled, expectSound, readState } from './queue-state.ts';

const tables = { queueJobs, queueResults, queueWorkers, queuePauses };
const queue = createQueue({ tables });
const backoff = fixedBackoff(BACKOFF_MS);
const kept = defineJob('kept', { backoff });
const forgotten = defineJob(KIND_WITHOUT_RESULT, { backoff, keepResult: false });

const LONG_AGO = Date.UTC(1990, 0, 1);
const FAR_AHEAD = Date.UTC(2090, 0, 1);
const BANDS = Array.from({ length: 10 }, (_, priority) => ({ priority, floorMs: Number.NEGATIVE_INFINITY }));

const outcomes: Readonly<Record<Ending, Outcome>> = {
  complete: { type: 'completed', output: '{"done":true}' },
  fail: { type: 'failed', error: new Error('no') },
  'fail for good': { type: 'failed', error: new NonRetryableError('never') },
  snooze: { type: 'snoozed', delayMs: SNOOZE_MS },
  cancel: { type: 'cancelled', reason: 'gone' },
  interrupt: { type: 'interrupted' },
};

/** An attempt in the hands of the worker that made it, with the whole claimed job. */
interface Claimed extends ModelAttempt {
  readonly job: ClaimedJob;
}

/** One walk through the lives of jobs: everything is done to the model and to the database, and the two are compared. */
export class Walk {
  readonly #model = new JobModel();
  /** Every claim of a job that was ever made, newest last: a worker may still believe in any of them. */
  readonly #claimed: Claimed[] = [];
  readonly #settled = new Set<Claimed>();
  /** The id that each worker goes by now, and every id that one ever had. */
  readonly #workerIds: number[] = [];
  readonly #everyWorkerId: number[] = [];
  readonly #highestFences = new Map<number, number>();
  #nowUs = 0;

  /**
   * @param app the connection of whoever enqueues
   * @param workers one connection per worker
   * @param saw is told what has happened
   */
  constructor(
    readonly app: Connection,
    readonly workers: readonly Connection[],
    readonly saw: (event: string) => void,
  ) {}

  /** Begins with empty tables. */
  async begin(): Promise<void> {
    await this.app.client`truncate queue_jobs, queue_results, queue_workers`;
    for (const index of this.workers.keys()) await this.#register(index);
    await this.#compare();
  }

  async take({ happens, to }: Step): Promise<void> {
    // What it happens to belongs to what happens; TypeScript does not carry the pair through the lookup.
    await (this.#happen[happens] as (to: unknown) => Promise<void>)(to);
    await this.#compare();
  }

  readonly #happen: { readonly [K in keyof Happenings]: (to: Happenings[K]) => Promise<void> } = {
    enqueue: async (job) => {
      const enqueued = await queue.enqueue(this.app.db, definitionOf(job.kind), undefined, {
        queue: job.queue,
        ...optionsOf(job),
      });
      this.#expectEnqueued(enqueued, job);
    },

    enqueueMany: async ({ queue: name, kind, entries }) => {
      const options = entries.map((entry) => ({ queue: name, ...optionsOf(entry) }));
      const enqueued = await queue.enqueueMany(this.app.db, definitionOf(kind), options);
      expect(enqueued).toHaveLength(entries.length);
      for (const [index, entry] of entries.entries())
        this.#expectEnqueued(at(enqueued, index), { ...entry, queue: name, kind });
    },

    claim: (to) => this.#claim(to),

    claimTwice: async (to) => {
      await this.#claim(to);
      await this.#claim({ ...to, worker: to.worker + 1, sweep: true });
    },

    settle: async ({ attempt, ending }) => {
      const claimed = this.#anyAttempt(attempt, this.#unsettled());
      if (claimed !== undefined) await this.#settle([{ claimed, ending }]);
    },

    settleTogether: async ({ attempt, endings }) => {
      const one = this.#anyAttempt(attempt, this.#unsettled());
      const mine = this.#unsettled().filter(
        ({ workerId, queue }) => workerId === one?.workerId && queue === one.queue,
      );
      // A worker that has claimed a job again settles its newest claim.
      const newest = [...new Map(mine.map((claimed) => [claimed.id, claimed])).values()];
      await this.#settle(
        newest.slice(-endings.length).map((claimed, index) => ({ claimed, ending: at(endings, index) })),
      );
    },

    settleLate: async ({ attempt, ending }) => {
      const claimed = this.#anyAttempt(attempt, this.#claimed);
      if (claimed !== undefined) await this.#settle([{ claimed, ending }]);
    },

    completeInTransaction: async ({ attempt, commit }) => {
      const claimed = this.#anyAttempt(attempt, this.#unsettled());
      if (claimed === undefined) return;
      const undo = new Error('undo');
      let finished = new Set<number>();
      const transaction = this.app.db.transaction(async (tx) => {
        finished = await finishJobs(tx, tables, claimed, [finishOf(claimed, 'complete')]);
        if (!commit) throw undo;
      });
      if (commit) this.#settled.add(claimed);
      if (commit) await transaction;
      else await expect(transaction).rejects.toBe(undo);
      const holds = commit ? this.#model.settle(claimed, 'complete') : this.#model.holds(claimed);
      expect(finished).toEqual(new Set(holds ? [claimed.id] : []));
      if (holds) this.saw(commit ? 'completed in a transaction' : 'a completion rolled back');
    },

    cancel: async ({ job }) => {
      const id = this.#anyJob(job)?.id;
      if (id === undefined) return;
      const answer = this.#model.cancel(id);
      expect(await queue.cancel(this.app.db, id)).toEqual(
        answer === 'cancelled' ? { cancelled: true } : { cancelled: false, reason: answer },
      );
      this.saw(`cancel: ${answer}`);
    },

    redriveOne: async ({ job, discarded }) => {
      const id = this.#anyJob(job, discarded ? ({ state }) => state === 'discarded' : undefined)?.id;
      if (id === undefined) return;
      const expected = this.#model.redrive((other) => other.id === id, 1);
      expect(await queue.redrive(this.app.db, id)).toEqual(expected);
      if (expected.redriven > 0) this.saw('redriven by id');
      if (expected.duplicates > 0) this.saw('a redrive refused for its key');
    },

    redriveMany: async ({ queue: name, limit }) => {
      const inQueue = (job: ModelJob) => name === undefined || job.queue === name;
      const expected = this.#model.redrive(inQueue, limit ?? Number.POSITIVE_INFINITY);
      expect(await queue.redrive(this.app.db, { queue: name, limit })).toEqual(expected);
      if (expected.redriven > 1) this.saw('several redriven');
      if (expected.duplicates > 0) this.saw('a redrive refused for its key');
    },

    die: async ({ worker, sweep, byItself }) => {
      const id = at(this.#workerIds, worker);
      await removeWorker(this.app.db, tables, id);
      this.#model.livingWorkers.delete(id);
      if (this.#model.live.some(({ workerId }) => workerId === id)) this.saw('a worker died holding jobs');
      await this.#register(worker % this.workers.length);
      if (sweep !== undefined) await this.#claim({ ...sweep, sweep: true }, byItself ? id : undefined);
    },

    beat: async ({ worker }) => {
      const id = at(this.#everyWorkerId, worker);
      const wasGone = !this.#model.livingWorkers.has(id);
      expect(await beatWorker(this.app.db, tables, { id, name: 'w', queues: [] })).toBe(wasGone);
      this.#model.livingWorkers.add(id);
      if (wasGone) this.saw('a worker came back');
    },

    release: async ({ worker, queue, except }) => {
      const workerId = at(this.#workerIds, worker);
      const exceptIds = [this.#anyJob(except)?.id ?? 0];
      const expected = this.#model.release(workerId, queue, exceptIds);
      const { db } = at(this.workers, worker);
      expect(await releaseJobs(db, tables, { queue, workerId, exceptIds })).toBe(expected);
      if (expected > 0) this.saw('jobs released');
    },

    makeDue: async ({ job: index, longAgo }) => {
      const waiting = this.#model.live.filter(({ workerId }) => workerId === null);
      if (waiting.length === 0) return;
      const job = at(waiting, index);
      const runAt = new Date(LONG_AGO + longAgo * 1_000);
      await this.app.client`update queue_jobs set run_at = ${runAt.toISOString()} where id = ${job.id}`;
      job.runAt = runAt.getTime() * 1_000;
    },

    look: async ({ job: index, page }) => {
      const job = this.#anyJob(index);
      if (job === undefined) return;
      expect((await queue.find(this.app.db, job.id))?.state ?? 'gone').toBe(
        this.#model.stateOf(job, this.#nowUs),
      );
      const listed: unknown[] = [];
      let cursor: number | undefined;
      do {
        const { jobs, nextCursor } = await queue.list(this.app.db, { limit: page, cursor });
        listed.push(...jobs.map(({ id, state }) => ({ id, state })));
        cursor = nextCursor;
      } while (cursor !== undefined);
      const expected = [...this.#model.jobs.values()]
        .filter(({ state }) => state !== 'gone')
        .sort((a, b) => b.id - a.id)
        .map((job) => ({ id: job.id, state: this.#model.stateOf(job, this.#nowUs) }));
      expect(listed).toEqual(expected);
      if (expected.length > page) this.saw('several pages listed');
    },

    prune: async () => {
      expect(await pruneResults(this.app.db, tables, { retentionMs: 0, limit: 1_000 })).toBe(
        this.#model.prune(),
      );
    },
  };

  async #register(index: number): Promise<void> {
    const id = await registerWorker(at(this.workers, index).db, tables, { name: `w${index}`, queues: [] });
    this.#workerIds[index] = id;
    this.#everyWorkerId.push(id);
    this.#model.livingWorkers.add(id);
  }

  async #claim({ worker, byOneOfThePast, ...claim }: Happenings['claim'], as?: number): Promise<void> {
    // A claim goes by times that the model may not know yet.
    await this.#compare();
    const workerId = as ?? at(byOneOfThePast ? this.#everyWorkerId : this.#workerIds, worker);
    const takenOver = new Set(this.#model.live.filter((job) => job.workerId !== null).map(({ id }) => id));
    const jobs = await claimJobs(at(this.workers, worker).db, tables, {
      ...claim,
      bands: BANDS,
      workerId,
      fromGoneWorkers: claim.sweep,
    });
    const expected = this.#model.claim({ ...claim, workerId, nowUs: this.#nowUs });
    expect(jobs.map(({ id, attempt, fence }) => ({ id, attempt, fence }))).toEqual(
      expected.map(({ id, attempt, fence }) => ({ id, attempt, fence })),
    );
    for (const job of jobs) {
      const { id, queue, fence, attempt } = job;
      this.#claimed.push({ id, queue, workerId, fence, attempt, job });
      if (takenOver.has(id)) this.saw('a job taken over from a worker that is gone');
      if (attempt > job.maxAttempts) this.saw('a job claimed beyond its attempts');
    }
    const isGone = !this.#model.livingWorkers.has(workerId);
    if (isGone && jobs.length > 0) this.saw('claimed by a worker that is gone');
    const ownLeft = this.#model.live.filter(
      (job) => job.workerId === workerId && job.queue === claim.queue && !expected.includes(job),
    );
    if (
      isGone &&
      claim.sweep &&
      jobs.length < claim.limit &&
      ownLeft.some(({ kind }) => claim.kinds.includes(kind))
    )
      this.saw('a worker that is gone left alone what it holds');
    if (jobs.length > 1) this.saw('several claimed');
    if (jobs.length === claim.limit) this.saw('a claim reached its limit');
  }

  /** Settles attempts of one worker and queue, as a worker does: finishes in one statement, reschedules in another. */
  async #settle(
    settlements: readonly { readonly claimed: Claimed; readonly ending: Ending }[],
  ): Promise<void> {
    const held = settlements[0]?.claimed;
    if (held === undefined) return;
    const { db } = this.app;
    const rows = settlements.map(({ claimed, ending }) => settlementOf(claimed, ending));
    const foundHeld = await findHeldJobs(db, tables, held, rows);
    const finishes = rows.filter(isFinish);
    const reschedules = rows.filter(isReschedule);
    const settled = new Set([
      ...(finishes.length > 0 ? await finishJobs(db, tables, held, finishes) : []),
      ...(reschedules.length > 0 ? (await rescheduleJobs(db, tables, held, reschedules)).keys() : []),
    ]);

    const effective = new Set<number>();
    for (const { claimed, ending } of settlements) {
      this.#settled.add(claimed);
      const isEffective = this.#model.settle(claimed, ending);
      if (isEffective) effective.add(claimed.id);
      this.saw(isEffective ? `settled: ${ending}` : 'a stale settlement refused');
      if (isEffective && !this.#model.livingWorkers.has(claimed.workerId))
        this.saw('settled by a worker that is gone');
    }
    expect(settled).toEqual(effective);
    expect(new Set(foundHeld.keys())).toEqual(effective);
    if (effective.size > 1) this.saw('several settled at once');
  }

  #expectEnqueued({ id, duplicate }: Enqueued, job: Happenings['enqueue']): void {
    const { queue, kind, priority, maxAttempts, uniqueKey = null, due } = job;
    const standing = this.#model.standing(queue, kind, uniqueKey);
    expect(duplicate).toBe(standing !== undefined);
    if (standing !== undefined) {
      expect(id).toBe(standing.id);
      this.saw('a duplicate refused');
      return;
    }
    for (const known of this.#model.jobs.keys()) expect(id, 'ids grow').toBeGreaterThan(known);
    const runAt = dateOf(due);
    this.#model.enqueue({
      ...{ id, queue, kind, priority, maxAttempts, uniqueKey },
      runAt: runAt === undefined ? { delayMs: 0 } : runAt.getTime() * 1_000,
    });
  }

  #unsettled(): Claimed[] {
    return this.#claimed.filter((claimed) => !this.#settled.has(claimed));
  }

  #anyAttempt(index: number, among: readonly Claimed[]): Claimed | undefined {
    return among.length === 0 ? undefined : at(among, index);
  }

  #anyJob(index: number, matches: (job: ModelJob) => boolean = () => true): ModelJob | undefined {
    const jobs = [...this.#model.jobs.values()].filter(matches);
    return jobs.length === 0 ? undefined : at(jobs, index);
  }

  async #compare(): Promise<void> {
    const state = await readState(this.app.client);
    expectSound(state, this.#highestFences);
    expectAsModelled(state, this.#model, this.#nowUs);
    this.#nowUs = state.nowUs;
  }
}

/** One of them, whatever the number. */
function at<T>(things: readonly T[], index: number): T {
  const thing = things[index % things.length];
  if (thing === undefined) throw new Error('there is none');
  return thing;
}

function definitionOf(kind: string) {
  return kind === KIND_WITHOUT_RESULT ? forgotten : kept;
}

function optionsOf({ uniqueKey, priority, maxAttempts, due }: Omit<Happenings['enqueue'], 'queue' | 'kind'>) {
  return { uniqueKey, priority, maxAttempts, runAt: dateOf(due) };
}

function dateOf(due: Happenings['enqueue']['due']): Date | undefined {
  if (due === 'now') return undefined;
  return new Date('longAgo' in due ? LONG_AGO + due.longAgo * 1_000 : FAR_AHEAD + due.farAhead * 1_000);
}

interface Settlement<TTransition extends Transition = Transition> {
  readonly id: number;
  readonly fence: number;
  readonly transition: TTransition;
}

function settlementOf({ id, fence, job }: Claimed, ending: Ending): Settlement {
  const { keepResult } = definitionOf(job.kind);
  const { attempt, maxAttempts } = job;
  return {
    id,
    fence,
    transition: transitionFor(outcomes[ending], { attempt, maxAttempts, backoff, keepResult }),
  };
}

function finishOf(claimed: Claimed, ending: Ending): Settlement<Finish> {
  const settlement = settlementOf(claimed, ending);
  if (isFinish(settlement)) return settlement;
  throw new Error(`'${ending}' does not finish a job`);
}

function isFinish(settlement: Settlement): settlement is Settlement<Finish> {
  return settlement.transition.type === 'finish';
}

function isReschedule(settlement: Settlement): settlement is Settlement<Reschedule> {
  return settlement.transition.type === 'reschedule';
}
