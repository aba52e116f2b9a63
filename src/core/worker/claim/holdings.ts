import { findHeldJobs } from '../../queries/hold/find-held-jobs.ts';
import { findPageEnd } from '../../queries/hold/find-page-end.ts';
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

/** A stop promises an end, and the worker's own row is still to be removed after this. */
const LAST_LOOK_MS = 1_000;

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
   * To be called before a claim: an earlier one may have taken jobs, and its answer may have been lost. Looks
   * through one page of the table, so that claims go on beside a look through a large one. Returns how many
   * jobs were given back, to places that claims may have passed.
   */
  async releaseUnknown(): Promise<number> {
    return this.#lostAnswers.releaseInMs(performance.now()) > 0 ? 0 : await this.#releasePage();
  }

  /** Gives back what is held at the very end; looks through the table only if a claim's answer was lost. */
  async giveBack(tooLate: AbortSignal): Promise<void> {
    await this.#options.attempts.giveBackLeftovers(this.#options, tooLate);
    if (!this.#lostAnswers.suspected || tooLate.aborted) return;
    const endMs = performance.now() + LAST_LOOK_MS;
    const isOver = () => tooLate.aborted || performance.now() >= endMs;
    const passed = this.#look?.after ?? 0;
    await this.#lookUpTo(Number.POSITIVE_INFINITY, isOver);
    // Since that look began, the last claim may have taken what it had passed.
    if (passed > 0 && !isOver()) await this.#lookUpTo(passed, isOver);
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

  async #releasePage(): Promise<number> {
    const { db, tables, holder, attempts } = this.#options;
    this.#look ??= { beganMs: performance.now(), after: 0 };
    const look = this.#look;
    const { beganMs, after } = look;
    const last = await findPageEnd(db, tables, { queue: holder.queue, after });
    const mayHaveBegun = this.#endsMayBeLost;
    const ids = { after, last };
    const released = await releaseJobs(db, tables, { ...holder, except: attempts.jobs, ids, mayHaveBegun });
    if (last !== undefined) look.after = last;
    else {
      if (this.#look === look) this.#look = undefined;
      // Another server may have answered meanwhile: then they are looked for again.
      if (this.#lostAnswers.noteRelease(beganMs, performance.now())) this.#endsMayBeLost = false;
    }
    return released;
  }
}
