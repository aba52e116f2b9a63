import { jobsInWords } from '../../job/jobs-in-words.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Beginners } from '../../sql/claim-beginning.ts';
import type { Holder } from '../../sql/fence.ts';
import { Doubling } from '../../time/doubling.ts';
import type { Retries } from '../../time/retries.ts';
import type { Bag } from '../base/bag.ts';
import type { WorkerEmitter } from '../base/events.ts';
import { isAboutTheServer } from '../base/refusal.ts';
import type { Attempt } from '../run/attempt.ts';
import { KeptPlans } from '../statements/kept-plans.ts';
import type { WorkerRunner } from '../statements/statements.ts';
import { isLastAfterDeath, isPrecious, MAX_RECORDED, mostTogether } from './precious-attempt.ts';
import { recordBeginnings } from './record-beginnings.ts';

export interface BeginningsOptions {
  readonly runner: WorkerRunner;
  readonly tables: QueueTables;
  readonly holder: Holder;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
}

/** How a statement about a group of attempts has ended. The attempts that it names have not begun. */
export interface RecordResult {
  /** No longer held: they must not run. */
  readonly lost: readonly Attempt[];
  /** Another transaction has locked their rows. */
  readonly locked: readonly Attempt[];
  /** The database refuses to record it. */
  readonly refused: Attempt | undefined;
}

/** The first stock; then it learns how many are called while a statement is under way. */
const FIRST_RECORDED = 16;
/** How fast the stock shrinks when it proves to be more than needed. */
const SHRINK = 0.95;
/** After this a job that the database did not let begin is tried again. */
export const REFUSED_MS = 10_000;

/**
 * Lets a crash spend a *precious* attempt, the last one or one after a death, only if it has begun. So such
 * jobs can be claimed by the thousand, and one that kills its worker takes none with it that waits.
 *
 * Where most jobs of a queue are precious, a claim takes only what will be called in a moment, and begins it.
 * The others are recorded in groups, each while the handlers of the group before are called. A crash also
 * spends what has begun and is not called, so that is only what keeps the slots busy, and less the more there
 * is to lose: see {@link mostTogether}.
 */
export class Beginnings {
  readonly #options: BeginningsOptions;
  /** By kind, if an attempt of it has ended here: how many of these were last ones after a death. */
  readonly #survivors = new Map<string, number>();
  readonly #stopping = new AbortController();
  readonly #keptPlans: KeptPlans;
  #unrecorded = 0;
  #recorded = 0;
  /** The most that may be recorded together with what is recorded now. */
  #most = MAX_RECORDED;
  #isRecording = false;
  /** How many to record ahead, so that no slot waits for the next statement. */
  #stock = FIRST_RECORDED;
  #maxGroup = MAX_RECORDED;
  readonly #delays = new Doubling();
  #mostArePrecious = false;

  constructor(options: BeginningsOptions) {
    this.#options = options;
    this.#keptPlans = new KeptPlans(options);
  }

  add(attempts: readonly Attempt[]): void {
    let precious = 0;
    for (const attempt of attempts) {
      // Attempts that end without running have nothing to lose.
      if (!isPrecious(attempt.job) || attempt.unwanted) continue;
      precious++;
      attempt.recording = attempt.job.begun ? 'recorded' : 'claimed';
      if (attempt.job.begun) this.#recorded++;
      else this.#unrecorded++;
    }
    if (attempts.length > 0) this.#mostArePrecious = precious * 2 > attempts.length;
  }

  /** Forgets an attempt: its handler is called, or never will be. */
  delete(attempt: Attempt): void {
    if (attempt.recording === undefined) return;
    if (attempt.recording === 'recorded') this.#recorded--;
    else this.#unrecorded--;
    attempt.recording = undefined;
  }

  /** Whether a statement has failed and is to be sent again: until then claiming more is of no use. */
  get isFailing(): boolean {
    return !this.#delays.isFirst && this.#isRecording;
  }

  /**
   * Which of the jobs that are claimed now begin with the claim.
   * @param soon how many of the jobs that wait or are claimed now will be called soon
   */
  ofClaim(
    waiting: readonly Attempt[],
    running: Bag<'placeRunning', Attempt>,
    concurrency: number,
    soon: number,
  ): 0 | 1 | Beginners {
    if (!this.#mostArePrecious) return waiting.length === 0 && running.size < concurrency ? 1 : 0;
    // What may kill the worker comes first, alone.
    if (this.#standsApart || (this.#unrecorded > 0 && !waiting.every((attempt) => this.#isCalm(attempt))))
      return 0;
    for (const { job } of running) if (!this.isProven(job.kind)) return 0;
    const atMost = soon - waiting.length;
    if (atMost <= 0) return 0;
    return { atMost, provenKinds: [...this.#survivors.keys()] };
  }

  /** An attempt has ended, and the worker lives. */
  noteSurvived({ job }: Attempt): void {
    const survivors = this.#survivors.get(job.kind);
    const standsAlone = isLastAfterDeath(job);
    if (survivors === undefined || standsAlone) {
      this.#survivors.set(job.kind, (survivors ?? 0) + Number(standsAlone));
    }
  }

  isProven(kind: string): boolean {
    return this.#survivors.has(kind);
  }

  /** Ends the sleep after a failed statement. */
  stop(): void {
    this.#stopping.abort();
  }

  get hasUnrecorded(): boolean {
    return this.#unrecorded > 0;
  }

  /** Whether there is something to record now, when `soon` of the waiting attempts will be called soon. */
  isDue(waiting: readonly Attempt[], soon: number): boolean {
    if (this.#unrecorded === 0 || this.#isRecording || this.#standsApart) return false;
    // Refilled when half empty, so that a statement is worth its round trip. What is recorded behind one that
    // is not keeps no slot busy.
    const half = this.#ahead(soon) / 2;
    for (let at = 0; at <= half; at++) {
      const attempt = waiting[at];
      if (attempt === undefined) return false;
      if (!attempt.mayBegin) return true;
    }
    return false;
  }

  /**
   * The waiting attempts that must be called before this one is recorded; `undefined` where there are none.
   * A job that follows another of its group comes before jobs that have begun with a later claim, and they
   * would wait for each other.
   */
  before(attempt: Attempt, waiting: readonly Attempt[]): readonly Attempt[] | undefined {
    if (attempt.recording !== 'claimed' || this.#recorded === 0) return undefined;
    if (!this.#standsApart && this.#recorded < this.#mostWith(attempt)) return undefined;
    return waiting.filter(({ recording }) => recording === 'recorded');
  }

  /** Whether a statement is under way that records it: then it cannot be given back yet. */
  isRecordingOf({ recording }: Attempt): boolean {
    return recording === 'recording';
  }

  /**
   * Records the next group of what waits, unless there is none.
   * @param isHurried whether the handlers are over sooner than the server writes to its disk
   */
  async record(
    waiting: readonly Attempt[],
    soon: number,
    isHurried: boolean,
  ): Promise<RecordResult | undefined> {
    if (!this.isDue(waiting, soon)) return undefined;
    const group = this.#nextGroup(waiting, this.#ahead(soon));
    if (group.length === 0) return undefined;
    this.#isRecording = true;
    for (const attempt of group) attempt.recording = 'recording';
    const result = await this.#write(group, isHurried);
    this.#isRecording = false;
    return result;
  }

  #ahead(soon: number): number {
    return Math.min(soon, Math.floor(this.#stock));
  }

  /** Whether others may begin beside it. */
  #isCalm({ job, mayBegin }: Attempt): boolean {
    return mayBegin || (this.isProven(job.kind) && mostTogether(job, 0) === MAX_RECORDED);
  }

  /** Whether what is recorded must have been called before anything else begins. */
  get #standsApart(): boolean {
    return this.#recorded > 0 && this.#most < MAX_RECORDED;
  }

  #nextGroup(waiting: readonly Attempt[], ahead: number): Attempt[] {
    this.#most = MAX_RECORDED;
    const group: Attempt[] = [];
    for (let at = 0; at < ahead && group.length < this.#maxGroup; at++) {
      const attempt = waiting[at];
      if (attempt === undefined) break;
      if (attempt.recording === 'claimed') {
        const most = Math.min(this.#most, this.#mostWith(attempt));
        if (this.#recorded + group.length >= most) break;
        this.#most = most;
        group.push(attempt);
      }
      // It may kill the worker: those behind it are recorded only when it has been called.
      if (!this.isProven(attempt.job.kind)) break;
    }
    return group;
  }

  /** How many may be recorded together with this one. */
  #mostWith({ job }: Attempt): number {
    const survivors = this.#survivors.get(job.kind);
    return survivors === undefined ? 1 : mostTogether(job, survivors);
  }

  async #write(group: readonly Attempt[], isHurried: boolean): Promise<RecordResult> {
    const { holder, events, retries } = this.#options;
    try {
      const jobs = group.map(({ job }) => job);
      const { begun, locked } = await recordBeginnings(this.#options, jobs, this.#stopping.signal, {
        onDisk: isHurried ? 'soon' : 'now',
        keptPlans: this.#keptPlans,
      });
      const ranOut = this.#recorded === 0;
      this.#stock = ranOut
        ? Math.min(this.#stock * 2, MAX_RECORDED)
        : Math.max(this.#stock * SHRINK, FIRST_RECORDED);
      this.#maxGroup = Math.min(this.#maxGroup * 2, MAX_RECORDED);
      this.#delays.reset();
      for (const attempt of group) this.#move(attempt, begun.has(attempt.job.id));
      const left = group.filter(({ recording }) => recording === 'claimed');
      return {
        lost: left.filter(({ job }) => !locked.has(job.id)),
        locked: left.filter(({ job }) => locked.has(job.id)),
        refused: undefined,
      };
    } catch (error) {
      const isRefused = !isAboutTheServer(error);
      if (!isRefused || group.length === 1) {
        events.emit('error', {
          error,
          during: `beginning ${jobsInWords(group.length)} of '${holder.queue}'`,
        });
      }
      if (!isRefused) await retries.sleep(this.#delays.next(), this.#stopping.signal);
      // The failure may be about one of them: half as many next time, until that one is found.
      this.#maxGroup = Math.max(1, Math.floor(group.length / 2));
      for (const attempt of group) this.#move(attempt, false);
      return { lost: [], locked: [], refused: isRefused && group.length === 1 ? group[0] : undefined };
    }
  }

  #move(attempt: Attempt, isRecorded: boolean): void {
    // Its job may have been found lost meanwhile.
    if (attempt.recording === undefined) return;
    attempt.recording = isRecorded ? 'recorded' : 'claimed';
    if (!isRecorded) return;
    this.#recorded++;
    this.#unrecorded--;
  }
}
