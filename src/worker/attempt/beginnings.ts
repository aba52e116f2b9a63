import { type Begun, beginFreeJobs, beginJobs } from '../../queries/begin-jobs.ts';
import type { ClaimedJob } from '../../queries/claim-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import type { HeldJob, Holder } from '../../sql/fence.ts';
import type { Retries } from '../time/retries.ts';
import type { Attempt } from './attempt.ts';
import type { WorkerEmitter } from './events.ts';
import { isAboutLocks, isAboutTheServer } from './refusal.ts';

export interface BeginningsOptions {
  readonly runner: Runner;
  readonly tables: QueueTables;
  readonly held: Holder;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
}

/** What became of a group of attempts that were to be recorded. */
export interface Recorded {
  /** No longer held: they must not run. */
  readonly lost: readonly Attempt[];
  /** Another transaction has locked their rows. */
  readonly locked: readonly Attempt[];
  /** The database refuses to record it. */
  readonly refused: Attempt | undefined;
}

type Stage = 'claimed' | 'recording' | 'recorded';

/** At most so many are recorded whose handlers are not called yet: a crash spends the attempts of these. */
const MAX_RECORDED = 1_000;
/** With so many it begins, and learns how many are called while a statement is under way. */
const FIRST_RECORDED = 16;
/** What is recorded ahead shrinks so fast when it proves to be more than needed. */
const SHRINK = 0.95;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/**
 * Records the beginning of attempts that were claimed without it, shortly before their handlers are called. A
 * crash spends the attempt of what has begun, and of nothing else that is claimed. So jobs on their last
 * attempt can be claimed by the thousand, and a job that kills its worker does not take with it what waits
 * behind it.
 *
 * One statement records a group, while the handlers of the group before are called. What is recorded and not
 * called is lost in a crash all the same, so groups are as small as keeps the slots busy, and smaller the
 * more there is to lose: see {@link mostTogether}.
 */
export class Beginnings {
  readonly #options: BeginningsOptions;
  readonly #stages = new Map<Attempt, Stage>();
  /** The kinds of which an attempt has ended here. The others may kill the worker whenever they run. */
  readonly #provenKinds = new Set<string>();
  readonly #stopping = new AbortController();
  #recorded = 0;
  /** No more may be recorded together with what is. */
  #most = MAX_RECORDED;
  #isRecording = false;
  /** So many are to be recorded ahead, so that no slot waits for the next statement. */
  #stock = FIRST_RECORDED;
  #maxGroup = MAX_RECORDED;
  #refusals = 0;

  constructor(options: BeginningsOptions) {
    this.#options = options;
  }

  /** Takes in an attempt whose claim has not recorded its beginning. */
  add(attempt: Attempt): void {
    // These end without running.
    if (attempt.unwanted || attempt.job.attempt > attempt.job.maxAttempts) return;
    this.#stages.set(attempt, 'claimed');
  }

  /** Forgets an attempt: its handler is called, or never will be. */
  delete(attempt: Attempt): void {
    if (this.#stages.get(attempt) === 'recorded') this.#recorded--;
    this.#stages.delete(attempt);
  }

  /** Whether the attempt's handler may be called. */
  isRecorded(attempt: Attempt): boolean {
    const stage = this.#stages.get(attempt);
    return stage === undefined || stage === 'recorded';
  }

  /** Whether a statement about the attempt is under way, so that no other may change its row. */
  isRecording(attempt: Attempt): boolean {
    return this.#stages.get(attempt) === 'recording';
  }

  /** Whether a statement has failed and is to be sent again: until then it is of no use to claim more. */
  get isFailing(): boolean {
    return this.#refusals > 0 && this.#isRecording;
  }

  /** Whether there is nothing to record, or a statement is under way. */
  get isBusyOrIdle(): boolean {
    return this.#stages.size === 0 || this.#isRecording;
  }

  /** An attempt of this kind has ended, and the worker lives. */
  noteEnd(kind: string): void {
    this.#provenKinds.add(kind);
  }

  isProven(kind: string): boolean {
    return this.#provenKinds.has(kind);
  }

  /** Ends the pause after a statement that failed. */
  stop(): void {
    this.#stopping.abort();
  }

  /**
   * Records the next group of what waits, unless there is none, or a statement is under way. Resolves when
   * that is done.
   *
   * @param soon how many of those that wait will be called soon
   */
  async record(waiting: readonly Attempt[], soon: number): Promise<Recorded | undefined> {
    if (this.isBusyOrIdle) return undefined;
    const group = this.#nextGroup(waiting, soon);
    if (group.length === 0) return undefined;
    this.#isRecording = true;
    for (const attempt of group) this.#stages.set(attempt, 'recording');
    const recorded = await this.#write(group);
    this.#isRecording = false;
    return recorded;
  }

  #nextGroup(waiting: readonly Attempt[], soon: number): Attempt[] {
    // Refilled when half empty, so that a statement is worth its round trip.
    const ahead = Math.min(soon, Math.floor(this.#stock));
    if (this.#recorded > ahead / 2) return [];
    if (this.#recorded === 0) this.#most = MAX_RECORDED;
    const group: Attempt[] = [];
    for (let at = 0; at < ahead && group.length < this.#maxGroup; at++) {
      const attempt = waiting[at];
      if (attempt === undefined) break;
      const isProven = this.#provenKinds.has(attempt.job.kind);
      if (this.#stages.get(attempt) === 'claimed') {
        const most = Math.min(this.#most, isProven ? mostTogether(attempt.job) : 1);
        if (this.#recorded + group.length >= most) break;
        this.#most = most;
        group.push(attempt);
      }
      // What stands behind it is recorded when it has been called: it may kill the worker.
      if (!isProven) break;
    }
    return group;
  }

  async #write(group: readonly Attempt[]): Promise<Recorded> {
    const { held, events, retries } = this.#options;
    try {
      const { begun, locked } = await this.#begin(group.map(({ job }) => job));
      const ranOut = this.#recorded === 0;
      this.#stock = ranOut
        ? Math.min(this.#stock * 2, MAX_RECORDED)
        : Math.max(this.#stock * SHRINK, FIRST_RECORDED);
      this.#maxGroup = Math.min(this.#maxGroup * 2, MAX_RECORDED);
      this.#refusals = 0;
      this.#move(group, ({ job }) => (begun.has(job.id) ? 'recorded' : 'claimed'));
      const left = group.filter((attempt) => this.#stages.get(attempt) === 'claimed');
      return {
        lost: left.filter(({ job }) => !locked.has(job.id)),
        locked: left.filter(({ job }) => locked.has(job.id)),
        refused: undefined,
      };
    } catch (error) {
      const isRefused = !isAboutTheServer(error);
      if (!isRefused || group.length === 1) {
        events.emit('error', { error, during: `beginning ${group.length} jobs of '${held.queue}'` });
      }
      if (!isRefused) {
        const delayMs = Math.min(FIRST_RETRY_MS * 2 ** this.#refusals++, MAX_RETRY_MS);
        await retries.sleep(delayMs, this.#stopping.signal);
      }
      // The failure may be about one of them: half as many next time, until that one is found.
      this.#maxGroup = Math.max(1, Math.floor(group.length / 2));
      this.#move(group, () => 'claimed');
      const [first] = group;
      return { lost: [], locked: [], refused: isRefused && group.length === 1 ? first : undefined };
    }
  }

  /** A locked row costs the others one statement more. */
  async #begin(jobs: readonly HeldJob[]): Promise<Begun> {
    const { runner, tables, held } = this.#options;
    try {
      return { begun: await beginJobs(runner, tables, held, jobs, { locks: 'briefly' }), locked: new Set() };
    } catch (error) {
      if (!isAboutLocks(error)) throw error;
      return await beginFreeJobs(runner, tables, held, jobs);
    }
  }

  #move(group: readonly Attempt[], stageOf: (attempt: Attempt) => Stage): void {
    for (const attempt of group) {
      // Its job may have been found lost meanwhile.
      if (!this.#stages.has(attempt)) continue;
      const stage = stageOf(attempt);
      if (stage === 'recorded') this.#recorded++;
      this.#stages.set(attempt, stage);
    }
  }
}

/**
 * How many may be recorded together with this job at most, itself included. The last attempt after one that
 * ended without a word stands alone: the job may be one that kills its worker, or one that stood behind it.
 * Before that each such end divides the group by eight, so the job that kills is found in a few crashes, and
 * those that were recorded with it have lost no more attempts than that.
 */
export function mostTogether({ attempt, maxAttempts, errors }: ClaimedJob): number {
  const lastRecorded = errors.at(-1)?.attempt ?? 0;
  const withoutWord = Math.max(attempt - 1 - lastRecorded, 0);
  if (withoutWord === 0) return MAX_RECORDED;
  return attempt === maxAttempts ? 1 : Math.max(1, Math.floor(MAX_RECORDED / 8 ** (withoutWord - 1)));
}
