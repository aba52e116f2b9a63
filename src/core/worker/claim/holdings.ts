import { findHeldJobs } from '../../queries/hold/find-held-jobs.ts';
import { releaseJobs } from '../../queries/hold/release-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import type { Retries } from '../../time/retries.ts';
import type { WorkerEmitter } from '../base/events.ts';
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
  /** Called when jobs may be held of which it is not known: {@link Holdings.releaseUnknown} is due. */
  readonly onDue: () => void;
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

  constructor(options: HoldingsOptions) {
    this.#options = options;
    this.#lostAnswers = new LostAnswers(options.onDue);
  }

  /** Waits for the result of a claim; returns with it whether the worker was declared gone meanwhile. */
  async answerTo(
    claim: Promise<ClaimAnswer>,
  ): Promise<{ readonly answer: ClaimAnswer; readonly wasGone: boolean }> {
    const returns = this.#returns;
    const answer = await this.#lostAnswers.answerTo(claim);
    if (answer.jobs.length > 0) this.#hasClaimed = true;
    return { answer, wasGone: this.#returns !== returns };
  }

  /** Whether jobs may be held of which it is not known, and which were not looked for. */
  get mayHoldMore(): boolean {
    return this.#lostAnswers.owed;
  }

  /** When to call {@link releaseUnknown}, whatever else happens: `Infinity` as a rule. */
  get releaseInMs(): number {
    return this.#lostAnswers.releaseInMs(performance.now());
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
   * To be called before a claim: an earlier one may have taken jobs, and its answer may have been lost.
   * Returns how many were given back, to places that claims may have passed.
   */
  async releaseUnknown(): Promise<number> {
    const nowMs = performance.now();
    if (this.#lostAnswers.releaseInMs(nowMs) > 0) return 0;
    const released = await this.#release();
    this.#lostAnswers.noteRelease(nowMs, performance.now());
    return released;
  }

  /** Gives back what is held at the very end; reads the whole queue only if a claim's answer was lost. */
  async giveBack(tooLate: AbortSignal): Promise<void> {
    await this.#options.attempts.giveBackLeftovers(this.#options, tooLate);
    if (tooLate.aborted) return;
    if (this.#lostAnswers.suspected) await this.#release();
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

  async #release(): Promise<number> {
    const { db, tables, holder, attempts } = this.#options;
    const mayHaveBegun = this.#endsMayBeLost;
    // Another server may answer while the statement is under way: then they are looked for again.
    this.#endsMayBeLost = false;
    try {
      return await releaseJobs(db, tables, { ...holder, except: attempts.jobs, mayHaveBegun });
    } catch (error) {
      this.#endsMayBeLost ||= mayHaveBegun;
      throw error;
    }
  }
}
