import { createQueue, type Enqueued, runNext } from 'drizzle-queue';
import { queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { expect } from 'vitest';
import { beatWorker } from '../../src/queries/beat-worker.ts';
import { claimJobs } from '../../src/queries/claim-jobs.ts';
import { atFaultPoints, type FaultPoint } from '../../src/queries/fault-point.ts';
import { findHeldJobs } from '../../src/queries/find-held-jobs.ts';
import { finishJobs } from '../../src/queries/finish-jobs.ts';
import { pruneResults } from '../../src/queries/prune-results.ts';
import { registerWorker } from '../../src/queries/register-worker.ts';
import { releaseJobs } from '../../src/queries/release-jobs.ts';
import { removeWorker } from '../../src/queries/remove-worker.ts';
import { rescheduleJobs } from '../../src/queries/reschedule-jobs.ts';
import { Retries } from '../../src/worker/retries.ts';
import { Settler } from '../../src/worker/settle-jobs.ts';
import { WorkerEmitter } from '../../src/worker/worker-events.ts';
import type { Connection } from '../support/test-database.ts';
import {
  type Claimed,
  definitionOf,
  finishOf,
  handlersThat,
  isFinish,
  isReschedule,
  settlementOf,
} from './endings.ts';
import type { Happenings, SingleStep, Step } from './happenings.ts';
import { type Ending, JobModel, type ModelClaim, type ModelJob } from './job-model.ts';
import { expectAsModelled, expectSound, readState } from './queue-state.ts';

const tables = { queueJobs, queueResults, queueWorkers, queuePauses };
const queue = createQueue({ tables });

const LONG_AGO = Date.UTC(1990, 0, 1);
const FAR_AHEAD = Date.UTC(2090, 0, 1);
const BANDS = Array.from({ length: 10 }, (_, priority) => ({ priority, floorMs: Number.NEGATIVE_INFINITY }));

/** An attempt, and how it ends. */
interface Ended {
  readonly claimed: Claimed;
  readonly ending: Ending;
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
   * @param transaction the connection of whoever holds a transaction open
   * @param workers one connection per worker
   * @param saw is told what has happened
   */
  constructor(
    readonly app: Connection,
    readonly transaction: Connection,
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
      this.#expectEnqueued(await this.#enqueue(job), job);
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
      await this.#settle(this.#endedTogether(attempt, endings));
    },

    settleLate: async ({ attempt, ending }) => {
      const claimed = this.#anyAttempt(attempt, this.#claimed);
      if (claimed !== undefined) await this.#settle([{ claimed, ending }]);
    },

    settleWhile: async ({ attempt, endings, finished, written, answerLost }) => {
      const ended = this.#endedTogether(attempt, endings);
      const held = ended[0]?.claimed;
      if (held === undefined) return;
      const giveUp = new AbortController();
      const events = new WorkerEmitter();
      events.on('error', ({ during }) => this.saw(`an answer lost while ${during.split(' ')[0]}`));
      const settler = new Settler({
        db: this.app.db,
        tables,
        held,
        events,
        retries: new Retries(),
        giveUp: giveUp.signal,
      });
      const rows = ended.map((one) => ({ ...one, settlement: settlementOf(one.claimed, one.ending) }));
      const effective = new Set<number>();
      const cancelled = new Set<number>();
      const settleInModel = (which: typeof rows) => {
        for (const { claimed, ending } of which) {
          this.#settled.add(claimed);
          if (this.#model.settle(claimed, ending)) effective.add(claimed.id);
        }
      };
      let again = false;
      const answers = await this.#interrupted(
        () => Promise.all(rows.map(({ settlement }) => settler.settle(settlement))),
        {
          'settle: finished': async () => {
            if (again) return;
            settleInModel(rows.filter(({ settlement }) => isFinish(settlement)));
            await this.#takeAll(finished);
          },
          'settle: written': async () => {
            if (again) return;
            again = true;
            const reschedules = rows.filter(({ settlement }) => isReschedule(settlement));
            settleInModel(reschedules);
            const requested = reschedules.filter(
              ({ claimed: { id } }) => effective.has(id) && this.#model.jobs.get(id)?.cancelRequested,
            );
            await this.#takeAll(written);
            if (answerLost) throw new LostAnswer();
            // What was put back with a request for its end is ended at once, unless somebody has claimed it.
            for (const { claimed } of requested) {
              const waits = this.#model.live.some(
                ({ id, workerId }) => id === claimed.id && workerId === null,
              );
              if (waits && this.#model.cancel(claimed.id) === 'cancelled') cancelled.add(claimed.id);
            }
          },
        },
        giveUp,
      );
      // Put back again, it finds nothing that it still holds; of what has ended the answer has come before.
      expect(answers).toEqual(
        rows.map(({ claimed: { id }, settlement }) => {
          if (!effective.has(id) || (answerLost && isReschedule(settlement))) return 'lost';
          return cancelled.has(id) ? { cancelled: 'cancelled' } : 'written';
        }),
      );
      if (cancelled.size > 0) this.saw('cancelled as it was put back');
    },

    claimLost: async ({ claim, answered }) => {
      await this.#compare();
      const workerId = this.#claimant(claim);
      const lost = new LostAnswer();
      const claiming = this.#interrupted(() => this.#claimJobs(claim, workerId), {
        'claim: answered': async () => {
          this.#model.claim({ ...claim, workerId, nowUs: this.#nowUs });
          await this.#takeAll(answered);
          throw lost;
        },
      });
      await expect(claiming).rejects.toBe(lost);
      // As a worker does after it: it gives back what it does not know to hold.
      const exceptIds = this.#unsettled()
        .filter((claimed) => claimed.workerId === workerId && claimed.queue === claim.queue)
        .map(({ id }) => id);
      const expected = this.#model.release(workerId, claim.queue, exceptIds);
      const { db } = at(this.workers, claim.worker);
      expect(await releaseJobs(db, tables, { queue: claim.queue, workerId, exceptIds })).toBe(expected);
      if (expected > 0) this.saw('jobs of a lost answer given back');
    },

    completeInTransaction: async ({ attempt, commit, finished }) => {
      const claimed = this.#anyAttempt(attempt, this.#unsettled());
      if (claimed === undefined) return;
      const undo = new Error('undo');
      const holds = this.#model.holds(claimed);
      let ended = new Set<number>();
      const transaction = this.transaction.db.transaction(async (tx) => {
        ended = await finishJobs(tx, tables, claimed, [finishOf(claimed, 'complete')]);
        await this.#whileLocked(holds ? claimed.id : undefined, finished);
        if (!commit) throw undo;
      });
      if (commit) this.#settled.add(claimed);
      if (commit) await transaction;
      else await expect(transaction).rejects.toBe(undo);
      expect(ended).toEqual(new Set(holds ? [claimed.id] : []));
      if (commit) expect(this.#model.settle(claimed, 'complete')).toBe(holds);
      if (holds) this.saw(commit ? 'completed in a transaction' : 'a completion rolled back');
    },

    runNextWhile: async ({ queue: name, kinds, ending, ran }) => {
      // A claim goes by times that the model may not know yet.
      await this.#compare();
      const claim = { workerId: null, queue: name, kinds, limit: 1, sweep: true, nowUs: this.#nowUs };
      const [next] = this.#model.claimable(claim);
      const handlers = handlersThat(ending, kinds);
      const answer = await this.#interrupted(
        () => runNext(this.transaction.db, { queue, handlers, queues: [name] }),
        { 'runNext: ran': () => this.#whileLocked(next?.id, ran) },
      );
      expect(answer?.job.id).toBe(next?.id);
      if (next === undefined) return;
      this.#model.runNext(next, ending);
      this.saw(`run in one transaction: ${answer?.outcome}`);
    },

    cancel: async ({ job, keyed }) => {
      const waits = ({ state, uniqueKey, workerId }: ModelJob) =>
        state === 'live' && uniqueKey !== null && workerId === null;
      const id = this.#anyJob(job, keyed ? waits : undefined)?.id;
      if (id === undefined) return;
      const answer = this.#model.cancel(id);
      expect(await queue.cancel(this.app.db, id)).toEqual(
        answer === 'cancelled' ? { cancelled: true } : { cancelled: false, reason: answer },
      );
      this.saw(`cancel: ${answer}`);
    },

    cancelWhile: async ({ job, found, notWaiting }) => {
      const id = this.#anyJob(job)?.id;
      if (id === undefined) return;
      const stateOf = () => this.#model.jobs.get(id)?.state;
      const before = stateOf();
      let expected = before === 'gone' ? 'not-found' : 'finished';
      /** Whether somebody holds it; the library looks again where this changes under its hands. */
      const isHeld = () => this.#model.live.some((job) => job.id === id && job.workerId !== null);
      const waits = () => stateOf() === 'live' && !isHeld();
      const first = { found, notWaiting };
      const answer = await this.#interrupted(() => queue.cancel(this.app.db, id), {
        'cancel: found': async () => {
          await this.#takeAll(first.found);
          first.found = [];
          if (waits()) expected = this.#model.cancel(id);
        },
        'cancel: not waiting': async () => {
          await this.#takeAll(first.notWaiting);
          first.notWaiting = [];
          if (isHeld()) expected = this.#model.cancel(id);
        },
      });
      expect(answer).toEqual(
        expected === 'cancelled' ? { cancelled: true } : { cancelled: false, reason: expected },
      );
      if (before === 'live') this.saw(`cancel of a live job: ${expected}`);
    },

    enqueueWhile: async ({ job, refused, nobodyStands }) => {
      // Once each: were the key to come and go at every try, the enqueue would rightly give up.
      const steps = { refused: [...refused], nobodyStands: [...nobodyStands] };
      const enqueued = await this.#interrupted(() => this.#enqueue(job), {
        'enqueue: refused': () => this.#takeAll(steps.refused.splice(0)),
        'enqueue: nobody stands': () => this.#takeAll(steps.nobodyStands.splice(0)),
      });
      this.#expectEnqueued(enqueued, job);
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
      // A state goes by times that the model may not know yet.
      await this.#compare();
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

  async #takeAll(steps: readonly SingleStep[]): Promise<void> {
    for (const step of steps) await this.take(step);
  }

  /** Takes steps while an open transaction has a job's row locked. */
  async #whileLocked(id: number | undefined, steps: readonly SingleStep[]): Promise<void> {
    this.#model.lockedId = id;
    if (steps.length > 0) this.saw('while a transaction is open');
    await this.#takeAll(steps);
    this.#model.lockedId = undefined;
  }

  /**
   * Runs an operation of the library, with something in between where it passes these fault points.
   *
   * @param giveUp what ends an operation that repeats whatever fails, when what came in between has failed
   */
  async #interrupted<T>(
    run: () => Promise<T>,
    between: Partial<Record<FaultPoint, () => Promise<void>>>,
    giveUp?: AbortController,
  ): Promise<T> {
    const failures: unknown[] = [];
    const pass = async (point: FaultPoint) => {
      const act = between[point];
      if (act === undefined) return;
      // What comes in between is not interrupted in its turn.
      atFaultPoints();
      this.saw(`in between: ${point}`);
      try {
        await act();
      } catch (error) {
        if (!(error instanceof LostAnswer)) {
          failures.push(error);
          giveUp?.abort();
        }
        throw error;
      } finally {
        atFaultPoints(pass);
      }
    };
    atFaultPoints(pass);
    const answer = run().finally(() => atFaultPoints());
    await answer.catch(() => undefined);
    // Whatever the operation has made of it.
    if (failures.length > 0) throw failures[0];
    return await answer;
  }

  #enqueue(job: Happenings['enqueue']): Promise<Enqueued> {
    return queue.enqueue(this.app.db, definitionOf(job.kind), undefined, {
      queue: job.queue,
      ...optionsOf(job),
    });
  }

  /** By which id a claim is made. */
  #claimant({ worker, byOneOfThePast }: Happenings['claim']): number {
    return at(byOneOfThePast ? this.#everyWorkerId : this.#workerIds, worker);
  }

  #claimJobs({ worker, sweep, queue, kinds, limit }: Happenings['claim'], workerId: number) {
    return claimJobs(at(this.workers, worker).db, tables, {
      ...{ queue, kinds, limit, workerId },
      bands: BANDS,
      fromGoneWorkers: sweep,
    });
  }

  async #claim(claim: Happenings['claim'], as?: number): Promise<void> {
    // A claim goes by times that the model may not know yet.
    await this.#compare();
    const workerId = as ?? this.#claimant(claim);
    const takenOver = new Set(this.#model.live.filter((job) => job.workerId !== null).map(({ id }) => id));
    const modelled: ModelClaim = { ...claim, workerId, nowUs: this.#nowUs };
    if (this.#model.claimable(modelled).some(({ id }) => id === this.#model.lockedId))
      this.saw('a job left alone that a transaction has locked');
    const jobs = await this.#claimJobs(claim, workerId);
    const expected = this.#model.claim(modelled);
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
  async #settle(settlements: readonly Ended[]): Promise<void> {
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

  /** What one worker has in one queue, with how it ends. */
  #endedTogether(attempt: number, endings: readonly Ending[]): Ended[] {
    const one = this.#anyAttempt(attempt, this.#unsettled());
    const mine = this.#unsettled().filter(
      ({ workerId, queue }) => workerId === one?.workerId && queue === one.queue,
    );
    // A worker that has claimed a job again settles its newest claim.
    const newest = [...new Map(mine.map((claimed) => [claimed.id, claimed])).values()];
    return newest.slice(-endings.length).map((claimed, index) => ({ claimed, ending: at(endings, index) }));
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

function optionsOf({ uniqueKey, priority, maxAttempts, due }: Omit<Happenings['enqueue'], 'queue' | 'kind'>) {
  return { uniqueKey, priority, maxAttempts, runAt: dateOf(due) };
}

function dateOf(due: Happenings['enqueue']['due']): Date | undefined {
  if (due === 'now') return undefined;
  return new Date('longAgo' in due ? LONG_AGO + due.longAgo * 1_000 : FAR_AHEAD + due.farAhead * 1_000);
}

/** What a walk throws on purpose, as opposed to everything else that fails in between. */
class LostAnswer extends Error {
  override name = 'LostAnswer';
}
