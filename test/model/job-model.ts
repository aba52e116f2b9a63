/**
 * The life of jobs as plain data: what the tables must hold after each thing that can happen to a job. No SQL, no state machine of
 * the library's: written from its documentation, so that the two can disagree.
 */

import { GroupModel, NO_GROUP } from './group-model.ts';
import {
  BACKOFF_MS,
  type Ending,
  endingOfRunNext,
  type FinalState,
  inOrder,
  isPrecious,
  KIND_WITHOUT_RESULT,
  known,
  type ModelAttempt,
  type ModelClaim,
  type ModelJob,
  mayBeginWithOthers,
  SNOOZE_MS,
  WAIT_MS,
} from './model-job.ts';

/** How many errors a job keeps. */
const KEPT_ERRORS = 10;

export class JobModel {
  readonly jobs = new Map<number, ModelJob>();
  readonly livingWorkers = new Set<number>();
  /** The jobs whose rows an open transaction has locked: to all others they are as they were before that transaction. */
  locked: ReadonlySet<number> = new Set();
  /** The attempts that had begun, and whose jobs others have taken over: `id/fence`. */
  readonly takenOver = new Set<string>();
  readonly groups: GroupModel;

  constructor(groups = new GroupModel({})) {
    this.groups = groups;
  }

  get live(): ModelJob[] {
    return [...this.jobs.values()].filter((job) => job.state === 'live');
  }

  /** The live job that stands in the way of another with this key. */
  standing(queue: string, kind: string, uniqueKey: string | null): ModelJob | undefined {
    if (uniqueKey === null) return undefined;
    return this.live.find((job) => job.queue === queue && job.kind === kind && job.uniqueKey === uniqueKey);
  }

  enqueue(
    job: Pick<ModelJob, 'id' | 'queue' | 'kind' | 'priority' | 'maxAttempts' | 'uniqueKey' | 'runAt'> &
      Partial<Pick<ModelJob, 'waitingKey' | 'group' | 'cost'>>,
  ): void {
    this.jobs.set(job.id, {
      waitingKey: null,
      group: this.groups.isGrouped(job.queue) ? NO_GROUP : null,
      cost: 1,
      ...job,
      state: 'live',
      attempt: 0,
      fence: 0,
      workerId: null,
      begun: false,
      lastRecorded: 0,
      errors: [],
      cancelRequested: false,
      unparked: false,
      redriven: false,
    });
  }

  /** The jobs that a claim would take, in its order. */
  claimable(claim: ModelClaim): ModelJob[] {
    // A worker that is taken for gone by mistake still runs what it holds, so it does not take that a second time.
    const free = (job: ModelJob) =>
      job.workerId === null ||
      (claim.sweep && job.workerId !== claim.workerId && !this.livingWorkers.has(job.workerId));
    return this.live
      .filter((job) => job.queue === claim.queue && claim.kinds.includes(job.kind) && free(job))
      .filter((job) => job.group === null && known(job.runAt) <= claim.nowUs)
      .sort(inOrder);
  }

  /** Answers the claimed jobs in claim order. */
  claim(claim: ModelClaim): ModelJob[] {
    const claimed = this.claimable(claim)
      .filter(({ id }) => !this.locked.has(id))
      .slice(0, claim.limit);
    this.take(claimed, claim);
    return claimed;
  }

  /** The claim takes these jobs, in this order. */
  take(claimed: readonly ModelJob[], claim: ModelClaim): void {
    // A sweep claims in no order.
    const together = !claim.sweep && typeof claim.beginning === 'object' ? claim.beginning : undefined;
    const first = typeof claim.beginning === 'object' ? 0 : (claim.beginning ?? claim.limit);
    let isCalm = true;
    for (const [place, job] of claimed.entries()) {
      if (job.workerId !== null && job.begun) this.takenOver.add(`${job.id}/${job.fence}`);
      job.unparked = false;
      // Taken over from a worker that died before the attempt began, which is not spent.
      if (job.workerId === null || job.begun) job.attempt++;
      job.fence++;
      job.workerId = claim.workerId;
      isCalm &&=
        together === undefined || (together.provenKinds.includes(job.kind) && mayBeginWithOthers(job));
      const begins = place < (together?.atMost ?? first) && isCalm;
      job.begun = begins || !isPrecious(job);
      job.waitingKey = null;
      this.groups.goOn(job);
    }
  }

  /** An attempt begins, if its worker still holds the job; answers whether. */
  begin(attempt: ModelAttempt): boolean {
    if (!this.holds(attempt)) return false;
    const job = this.#get(attempt.id);
    job.begun = true;
    job.unparked = false;
    return true;
  }

  /** Whether an attempt's worker still holds the job, under the attempt's fence. */
  holds({ id, workerId, fence }: ModelAttempt): boolean {
    const job = this.#get(id);
    return job.state === 'live' && job.workerId === workerId && job.fence === fence;
  }

  /** Answers whether it took effect. */
  settle(held: ModelAttempt, ending: Ending): boolean {
    if (!this.holds(held)) return false;
    const job = this.#get(held.id);
    const { attempt } = held;
    switch (ending) {
      case 'complete':
        job.state = job.kind === KIND_WITHOUT_RESULT ? 'gone' : 'completed';
        job.cancelRequested = false;
        break;
      case 'cancel':
        this.#finish(job, 'cancelled', 'Cancelled');
        break;
      case 'fail':
        if (attempt < job.maxAttempts) this.#again(job, BACKOFF_MS, attempt, 'Error');
        else this.#discard(job, 'Error');
        break;
      case 'fail for good':
        this.#discard(job, 'NonRetryableError');
        break;
      case 'snooze':
        this.#again(job, SNOOZE_MS, attempt - 1);
        break;
      case 'interrupt':
        this.#putBack(job, job.runAt, attempt - 1);
        break;
      case 'wait':
        this.#park(job, Number.POSITIVE_INFINITY, attempt - 1);
        break;
      case 'wait for a time':
        this.#park(job, { delayMs: WAIT_MS }, attempt - 1);
        break;
    }
    return true;
  }

  /** Runs a job in one transaction, from the claim to its end. */
  runNext(job: ModelJob, ending: Ending): void {
    if (job.workerId === null || job.begun) job.attempt++;
    job.fence++;
    job.workerId = null;
    job.waitingKey = null;
    job.begun = true;
    // Nobody wants it any more; or all its attempts were claimed before and none was settled. Either way no handler runs.
    if (job.cancelRequested) this.#finish(job, 'cancelled', 'Cancelled');
    else if (job.attempt > job.maxAttempts) this.#finish(job, 'discarded', 'WorkerLostError');
    else this.settle(job, endingOfRunNext(ending));
  }

  /** Gives back what a worker holds in a queue, but for some; answers how many. */
  release(
    workerId: number,
    queue: string,
    except: readonly { readonly id: number; readonly fence: number }[],
  ): number {
    const known = (job: ModelJob) => except.some(({ id, fence }) => id === job.id && fence === job.fence);
    const released = this.live.filter(
      (job) => job.workerId === workerId && job.queue === queue && !known(job),
    );
    for (const job of released) this.#putBack(job, job.runAt, job.attempt - 1);
    return released.length;
  }

  /** Ends a waiting job from outside, asks for the end of a held one, leaves a locked one alone; answers which. */
  cancel(id: number): 'cancelled' | 'requested' | 'locked' | 'finished' | 'not-found' {
    const job = this.#get(id);
    if (job.state === 'gone') return 'not-found';
    if (job.state !== 'live') return 'finished';
    if (this.locked.has(id)) return 'locked';
    if (job.workerId !== null) {
      job.cancelRequested = true;
      return 'requested';
    }
    this.#finish(job, 'cancelled', 'Cancelled');
    return 'cancelled';
  }

  /** Puts discarded jobs back, the oldest first; those whose key a live job holds stay. */
  redrive(matches: (job: ModelJob) => boolean, limit: number): { redriven: number; duplicates: number } {
    const discarded = [...this.jobs.values()]
      .filter((job) => job.state === 'discarded' && matches(job))
      .sort((a, b) => a.id - b.id)
      .slice(0, limit);
    let redriven = 0;
    for (const job of discarded) {
      if (this.standing(job.queue, job.kind, job.uniqueKey) !== undefined) continue;
      job.state = 'live';
      job.redriven = true;
      // One that has stopped its group takes its place again.
      this.#putBack(job, this.groups.goOn(job) ? job.runAt : { delayMs: 0 }, 0);
      redriven++;
    }
    return { redriven, duplicates: discarded.length - redriven };
  }

  /** Ends the waiting of those of the jobs that are live; answers which. */
  unpark(queue: string, ids: readonly number[], nowUs: number): Set<number> {
    const live = this.live.filter((job) => job.queue === queue && ids.includes(job.id));
    for (const job of live) {
      if (job.workerId === null && known(job.runAt) <= nowUs) continue;
      job.runAt = { delayMs: 0 };
      job.unparked = job.begun;
    }
    return new Set(live.map(({ id }) => id));
  }

  /** Deletes all results; answers how many there were. */
  prune(): number {
    const finished = [...this.jobs.values()].filter(({ state }) => state !== 'live' && state !== 'gone');
    for (const job of finished) job.state = 'gone';
    return finished.length;
  }

  /** The state that a job is shown in. */
  stateOf(job: ModelJob, nowUs: number): string {
    if (job.state !== 'live') return job.state;
    if (job.workerId !== null) return 'running';
    if (job.runAt === Number.POSITIVE_INFINITY) return 'waiting';
    return known(job.runAt) > nowUs ? 'scheduled' : 'due';
  }

  #get(id: number): ModelJob {
    const job = this.jobs.get(id);
    if (job === undefined) throw new Error(`the model knows no job ${id}`);
    return job;
  }

  #finish(job: ModelJob, state: FinalState, error: string): void {
    job.state = state;
    job.cancelRequested = false;
    job.waitingKey = null;
    // A result has a time, also of one that waited without a limit.
    if (job.runAt === Number.POSITIVE_INFINITY) job.runAt = { delayMs: 0 };
    job.errors = [...job.errors, error].slice(-KEPT_ERRORS);
    job.lastRecorded = job.attempt;
    if (state === 'discarded') this.groups.stop(job);
    else this.groups.goOn(job);
  }

  /** Unless its end was requested. */
  #discard(job: ModelJob, error: string): void {
    if (job.cancelRequested) this.#finish(job, 'cancelled', 'Cancelled');
    else this.#finish(job, 'discarded', error);
  }

  /** It keeps its place in its group where that waits for it. */
  #again(job: ModelJob, delayMs: number, attempt: number, error?: string): void {
    const keepsPlace = this.groups.waitFor(job, delayMs);
    this.#putBack(job, keepsPlace ? job.runAt : { delayMs }, attempt, error);
  }

  /** What was woken in the meantime, or is to be cancelled, does not wait. */
  #park(job: ModelJob, runAt: ModelJob['runAt'], attempt: number): void {
    this.#putBack(job, job.unparked || job.cancelRequested ? job.runAt : runAt, attempt);
  }

  #putBack(job: ModelJob, runAt: ModelJob['runAt'], attempt: number, error?: string): void {
    job.runAt = runAt;
    job.attempt = attempt;
    job.workerId = null;
    job.begun = false;
    job.unparked = false;
    if (error === undefined) return;
    job.errors = [...job.errors, error].slice(-KEPT_ERRORS);
    job.lastRecorded = attempt;
  }
}
