import { findHeldJobs } from '../../queries/hold/find-held-jobs.ts';
import { findPageEnd } from '../../queries/hold/find-page-end.ts';
import { findUnknownJobs } from '../../queries/hold/find-unknown-jobs.ts';
import { releaseJobs } from '../../queries/hold/release-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import type { HeldJob, Holder } from '../../sql/fence.ts';
import { isLoss } from '../../sql/is-loss.ts';
import type { Retries } from '../../time/retries.ts';
import { sleep } from '../../time/sleep.ts';
import type { WorkerEmitter } from '../base/events.ts';
import { inHalves } from '../base/in-halves.ts';
import type { Attempts } from '../begin/attempts.ts';
import type { ClaimAnswer } from './claims.ts';
import { LostAnswers } from './lost-answers.ts';

export interface HoldingsOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  readonly holder: Holder & { readonly workerId: number };
  readonly attempts: Attempts;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
  /** Called when the worker may hold jobs that it does not know: {@link Holdings.releaseUnknown} is due. */
  readonly onDue: () => void;
  /** Called when jobs were given back, or may have been, to places that claims may have passed. */
  readonly onReleased: () => void;
}

/** A stop promises an end, and the worker's own row is still to be removed after this. */
const LAST_LOOK_MS = 1_000;
const LAST_AGAIN_MS = 100;
/** When what is locked or refused is tried again: these pauses double. */
const FIRST_AGAIN_MS = 250;
const MAX_AGAIN_MS = 30_000;
/** After this many refusals at once the rest is tried later, since the next claim waits meanwhile. */
const MAX_REFUSALS = 50;

/** Which jobs of a claim are still held, with the fence of each by id; `undefined`: all. */
type Held = ReadonlyMap<number, number> | undefined;

/** A job that the worker holds without knowing it. */
interface UnknownJob extends HeldJob {
  readonly mayHaveBegun: boolean;
}

/** Keeps what a worker knows it holds of one queue equal to what the database says that it holds. */
export class Holdings {
  readonly #options: HoldingsOptions;
  readonly #lostAnswers: LostAnswers;
  /** How often this worker was declared gone and came back. */
  #returns = 0;
  /** Whether a claim has brought jobs since the last {@link noteOtherServer}. */
  #hasClaimed = false;
  /** Whether the server may have forgotten that jobs have ended, and the worker knows them no longer. */
  #endsMayBeLost = false;
  /** The look that is under way through the table, page by page. */
  #look: { readonly beganMs: number; after: number } | undefined;
  /** What it has found and could not give back, since the rows were locked. */
  readonly #locked = new Set<UnknownJob>();
  /** The same, since the database has refused it. The first one is tried next. */
  readonly #refused = new Set<UnknownJob>();
  #leftPauseMs = FIRST_AGAIN_MS;
  #leftAgainMs = Number.POSITIVE_INFINITY;

  constructor(options: HoldingsOptions) {
    this.#options = options;
    this.#lostAnswers = new LostAnswers(options.onDue);
  }

  /**
   * What the worker still holds of a claim that it has just sent: peers may take it for gone meanwhile, and
   * take some of the jobs. Where the answer is lost, all are looked for later.
   * @throws what the claim fails with
   */
  async heldOf(claim: Promise<ClaimAnswer>): Promise<Held> {
    const { held } = await this.#lostAnswers.answerTo(this.#withHeld(claim));
    return held;
  }

  async #withHeld(claim: Promise<ClaimAnswer>): Promise<Pick<ClaimAnswer, 'failure'> & { held: Held }> {
    let returns = this.#returns;
    const { jobs, failure } = await claim;
    let held: Held;
    while (this.#returns !== returns && jobs.length > 0) {
      returns = this.#returns;
      const { db, tables, holder } = this.#options;
      held = await findHeldJobs(db, tables, holder, jobs);
    }
    if (jobs.length > 0) this.#hasClaimed = true;
    return { failure, held };
  }

  /** Whether jobs may be held of which it is not known, and which were not looked for, or are locked. */
  get mayHoldMore(): boolean {
    return this.#lostAnswers.owed || this.#locked.size > 0;
  }

  /** When to call {@link releaseUnknown}, whatever else happens: `Infinity` as a rule. */
  get releaseInMs(): number {
    const nowMs = performance.now();
    return Math.min(this.#lostAnswers.releaseInMs(nowMs), Math.max(this.#leftAgainMs - nowMs, 0));
  }

  /**
   * Another server answers, or the same after a restart, and it may lack the last commits. Jobs whose ends
   * were among them are held again, by a worker that knows them no longer: it looks for them once.
   */
  noteOtherServer(): void {
    if (!this.#hasClaimed) return;
    this.#hasClaimed = this.#options.attempts.size > 0;
    this.#endsMayBeLost = true;
    this.#lostAnswers.suspect();
    this.#options.onDue();
  }

  /**
   * Gives back what earlier claims have taken whose answers were lost. Looks through one page of the table,
   * so that claims go on between the pages of a large one. A claim under way would lose its jobs to it.
   */
  async releaseUnknown(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs >= this.#leftAgainMs) await this.#releaseLeft();
    if (this.#lostAnswers.releaseInMs(nowMs) === 0) await this.#releasePage();
  }

  /**
   * Tries each job that is refused alone: it may have been so only together with others. Returns whether jobs
   * were given back, or are locked: then a drain goes on.
   */
  async releaseRefused(stopping: AbortSignal): Promise<boolean> {
    let released = 0;
    for (const job of [...this.#refused]) if (!stopping.aborted) released += await this.#release([job]);
    return released > 0 || this.#locked.size > 0;
  }

  /** Gives back what is held at the very end; looks through the table only if a claim's answer was lost. */
  async giveBack(tooLate: AbortSignal): Promise<void> {
    await this.#options.attempts.giveBackLeftovers(this.#options, tooLate);
    const endMs = performance.now() + LAST_LOOK_MS;
    const isOver = () => tooLate.aborted || performance.now() >= endMs;
    const refused = [...this.#refused];
    if (this.#lostAnswers.suspected && !isOver()) {
      const passed = this.#look?.after ?? 0;
      await this.#lookUpTo(Number.POSITIVE_INFINITY, isOver);
      // Since that look began, the last claim may have taken what it had passed.
      if (passed > 0 && !isOver()) await this.#lookUpTo(passed, isOver);
    }
    if (!isOver()) await this.#release([...this.#locked]);
    // Once: a row may be locked for a moment, but is seldom refused for one.
    for (const job of refused) if (!isOver()) await this.#release([job]);
    while (this.#locked.size > 0 && !isOver()) {
      await sleep(LAST_AGAIN_MS, tooLate);
      if (!isOver()) await this.#release([...this.#locked]);
    }
  }

  /** Ends the attempts whose jobs are no longer held, after this worker was declared gone for a while. */
  async endLost(): Promise<void> {
    this.#returns++;
    const { db, tables, holder, attempts } = this.#options;
    const { unfinished } = attempts;
    if (unfinished.length === 0) return;
    const jobs = unfinished.map(({ job }) => job);
    attempts.endLost(unfinished, await findHeldJobs(db, tables, holder, jobs));
  }

  async #lookUpTo(id: number, isOver: () => boolean): Promise<void> {
    do await this.#releasePage();
    while (this.#look !== undefined && this.#look.after < id && !isOver());
  }

  async #releasePage(): Promise<void> {
    const { db, tables, holder, attempts } = this.#options;
    this.#look ??= { beganMs: performance.now(), after: 0 };
    const look = this.#look;
    const { beganMs, after } = look;
    const last = await findPageEnd(db, tables, { queue: holder.queue, after });
    const except = [...attempts.jobs, ...this.#locked, ...this.#refused];
    const ids = { after, last };
    const mayHaveBegun = this.#endsMayBeLost;
    const jobs = await findUnknownJobs(db, tables, { ...holder, except, ids });
    const left = this.#locked.size + this.#refused.size;
    try {
      await this.#release(jobs.map((job) => ({ ...job, mayHaveBegun })));
    } finally {
      // Also before a failure: the next look leaves them out.
      if (this.#locked.size + this.#refused.size > left) this.#pauseFor(FIRST_AGAIN_MS);
    }
    if (last !== undefined) look.after = last;
    else {
      if (this.#look === look) this.#look = undefined;
      // Another server may have answered meanwhile: then they are looked for again.
      if (this.#lostAnswers.noteRelease(beganMs, performance.now())) this.#endsMayBeLost = false;
    }
  }

  /** Of what is refused, one tells whether the others are worth a try. */
  async #releaseLeft(): Promise<void> {
    let released = await this.#release([...this.#locked]);
    const [one] = this.#refused;
    if (one !== undefined) released += await this.#release([one]);
    if (one !== undefined && !this.#refused.has(one)) released += await this.#release([...this.#refused]);
    this.#pauseFor(released > 0 ? FIRST_AGAIN_MS : Math.min(this.#leftPauseMs * 2, MAX_AGAIN_MS));
  }

  #pauseFor(pauseMs: number): void {
    const left = this.#locked.size + this.#refused.size;
    this.#leftPauseMs = pauseMs;
    this.#leftAgainMs = left === 0 ? Number.POSITIVE_INFINITY : performance.now() + pauseMs;
  }

  /**
   * Gives jobs back, and keeps those that are locked or refused; returns how many it gave back.
   * @throws what is about no single row
   */
  async #release(jobs: readonly UnknownJob[]): Promise<number> {
    const { holder, events } = this.#options;
    let released = 0;
    let refusals = 0;
    for (const mayHaveBegun of [false, true]) {
      const alike = jobs.filter((job) => job.mayHaveBegun === mayHaveBegun);
      await inHalves(alike, {
        write: async (part) => {
          if (refusals === MAX_REFUSALS) {
            for (const job of part) this.#noteRefused(job);
            return;
          }
          refusals++;
          released += await this.#releaseTogether(part, mayHaveBegun);
          refusals--;
        },
        refuse: (job, error) => {
          this.#noteRefused(job);
          events.emit('error', { error, during: `giving back job ${job.id} of '${holder.queue}'` });
        },
      });
    }
    return released;
  }

  async #releaseTogether(jobs: readonly UnknownJob[], mayHaveBegun: boolean): Promise<number> {
    const { db, tables, holder, onReleased } = this.#options;
    try {
      const { released, locked } = await releaseJobs(db, tables, { ...holder, mayHaveBegun }, jobs);
      for (const job of jobs) {
        this.#refused.delete(job);
        if (locked.has(job.id)) this.#locked.add(job);
        else this.#locked.delete(job);
      }
      if (released > 0) onReleased();
      return released;
    } catch (error) {
      // Only the answer may be lost.
      if (isLoss(error)) onReleased();
      throw error;
    }
  }

  /** It is tried after all others. */
  #noteRefused(job: UnknownJob): void {
    this.#locked.delete(job);
    this.#refused.delete(job);
    this.#refused.add(job);
  }
}
