import { MissingMigrationError } from '../../../errors.ts';
import { describeError } from '../../job/describe-error.ts';
import { findRefusedJobs, type RefusedJob } from '../../queries/claim/find-refused-jobs.ts';
import { setAsideJob } from '../../queries/claim/set-aside-job.ts';
import { tryClaim } from '../../queries/claim/try-claim.ts';
import { runJobNow } from '../../queries/operate/run-job-now.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database } from '../../sql/executor.ts';
import { CLAIM_REFUSED } from '../../sql/refused-claim.ts';
import { resultWithin } from '../../time/resolves-within.ts';
import { isAboutLocks, isAboutTheServer, isCancelled } from '../base/refusal.ts';
import { SetAside } from './set-aside.ts';

export interface RefusedClaimsOptions {
  readonly db: Database;
  readonly tables: QueueTables;
  readonly queue: string;
  readonly workerId: number | null;
  /** Whether a job may be parked. Where jobs of a group keep their order, those behind it must wait. */
  readonly mayPark: boolean;
  /** Called once for each job that is set aside, with what the database says. */
  readonly onRefused: (job: RefusedJob, error: unknown) => void;
  /** Called with a job whose claim the database accepts again. */
  readonly onAccepted?: ((job: RefusedJob) => void) | undefined;
}

/** A search ends then, with what it has found. */
const MAX_SEARCH_MS = 10_000;
/** And it is not waited for any longer: a connection may be silent. */
const MAX_ANSWER_MS = 20_000;
/** After this many refusals and no success, a search checks whether every job is refused. */
const DOUBTFUL_PARTS = 63;
/** It tries this many jobs, spread evenly. */
const SAMPLES = 8;
/** This many jobs may be refused in a row with no accepted claim in between; later more. */
const FIRST_STREAK = 32;
const MAX_STREAK = 1_000;
/** After that, no search before this time; later less often. */
const FIRST_REST_MS = 5_000;
const MAX_REST_MS = 60_000;

/**
 * Keeps a row that refuses an UPDATE (a `CHECK … NOT VALID` that it breaks, a trigger that raises) from
 * stopping the claims of its queue. A claim says only that some row was refused. Smaller claims come near it
 * (see `NearRefusal`); then those that they may have met are tried, half by half, in transactions that are
 * rolled back. What refuses is set aside: claims leave it out, and once it is refused again it is parked,
 * where the database allows that.
 *
 * Where all that is tried is refused, the fault does not lie in a row. Then nothing is set aside, and the
 * claim has failed.
 */
export class RefusedClaims {
  readonly setAside = new SetAside();
  readonly #options: RefusedClaimsOptions;
  /** How many jobs were refused since a claim was last accepted, and how many may be. */
  #streak = 0;
  #mostInStreak = FIRST_STREAK;
  #restMs = FIRST_REST_MS;
  #searchAgainMs = Number.NEGATIVE_INFINITY;
  /** Jobs were set aside, and no other was claimed since. */
  #isDoubtful = false;

  constructor(options: RefusedClaimsOptions) {
    this.#options = options;
  }

  /** A claim was accepted, and has brought this many jobs. */
  noteAccepted(claimed: number): void {
    if (!this.#isDoubtful) return;
    this.#isDoubtful = claimed === 0;
    this.#streak = 0;
    this.#mostInStreak = FIRST_STREAK;
    this.#restMs = FIRST_REST_MS;
    for (const { job, error } of this.setAside.confirm(claimed > 0)) this.#options.onRefused(job, error);
  }

  /** Whether a claim that has failed with this error may have met a job that can be set aside. */
  mayOvercome(error: unknown): boolean {
    return mayLieInARow(error) && performance.now() >= this.#searchAgainMs && !this.setAside.isFull;
  }

  /**
   * Searches the jobs that a refused claim may have read, and sets aside the ones that cause the refusal.
   * Returns whether there are some, so that the same claim without them is worth a try. Never rejects.
   *
   * @param limit how many the claim has asked for
   * @param candidates reads the ids of the jobs that it may have met, in the order of the claim, and more
   */
  async overcome(limit: number, candidates: () => Promise<readonly number[]>): Promise<boolean> {
    this.#isDoubtful = true;
    return (await resultWithin(this.#searchAmong(limit, candidates), MAX_ANSWER_MS)) ?? false;
  }

  async #searchAmong(limit: number, candidates: () => Promise<readonly number[]>): Promise<boolean> {
    try {
      const all = await candidates();
      const first = all.slice(0, limit);
      const among = await this.#search(first, true);
      // Where all of a few are refused, or none, more of them tell whether it is the rows at all.
      const few = among === 'all' || among.size === 0 || among.size === first.length;
      const ids = few ? all : first;
      const refused = few && all.length > first.length ? await this.#search(all) : among;
      if (refused === 'all') return this.#giveUp();
      if (refused.size === 0) return false;
      await this.#add(refused);
      this.#streak = refused.size < ids.length ? 0 : this.#streak + refused.size;
      return this.#streak <= this.#mostInStreak ? true : this.#giveUp();
    } catch {
      // What the claim has failed with says as much.
      return false;
    }
  }

  /** Tries those again that were set aside some time ago. Parks what is refused again. Never rejects. */
  async tryAgain(): Promise<void> {
    const nowMs = performance.now();
    const lapsed = this.setAside.lapsed(nowMs);
    if (lapsed.length === 0) return;
    // Whatever comes of it, the next time is later.
    for (const one of lapsed) this.setAside.add(one, nowMs);
    await resultWithin(this.#tryAll(lapsed), MAX_ANSWER_MS);
  }

  async #tryAll(lapsed: ReturnType<SetAside['lapsed']>): Promise<void> {
    const { onAccepted } = this.#options;
    try {
      const refused = await this.#search(lapsed.map(({ job }) => job.id));
      for (const one of lapsed) {
        const { job } = one;
        const error = refused === 'all' ? one.error : refused.get(job.id);
        if (error === undefined) {
          this.setAside.remove(job.id);
          onAccepted?.(job);
        } else if (one.proven) await this.#park(job, error);
      }
    } catch {
      // The next claim will tell.
    }
  }

  /**
   * Which of these jobs refuse a claim, each with the error.
   *
   * @param isRefused whether a claim of all of them was refused
   */
  async #search(ids: readonly number[], isRefused = false): Promise<ReadonlyMap<number, unknown> | 'all'> {
    const refused = new Map<number, unknown>();
    const parts: Part[] = ids.length === 0 ? [] : [{ ids, isRefused }];
    const endMs = performance.now() + MAX_SEARCH_MS;
    let accepted = false;
    let tried = 0;
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      if (performance.now() >= endMs) break;
      const [only] = part.ids;
      if (part.ids.length === 1 || !part.isRefused) {
        tried++;
        const error = await this.#try(part.ids);
        if (error === undefined) {
          accepted = true;
          if (part.other !== undefined) part.other.isRefused = true;
          continue;
        }
        if (part.ids.length === 1 && only !== undefined) refused.set(only, error);
      }
      if (part.ids.length > 1) parts.push(...halvesOf(part.ids));
      const left = parts.flatMap((other) => other.ids);
      if (!accepted && tried === DOUBTFUL_PARTS && (await this.#areAllRefused(left))) return 'all';
    }
    return refused;
  }

  async #areAllRefused(ids: readonly number[]): Promise<boolean> {
    for (let sample = 0; sample < SAMPLES; sample++) {
      const id = ids[Math.floor((sample * ids.length) / SAMPLES)];
      if (id !== undefined && (await this.#try([id])) === undefined) return false;
    }
    return true;
  }

  /** @throws what does not lie in a row */
  async #try(ids: readonly number[]): Promise<unknown> {
    const { db, tables, queue, workerId } = this.#options;
    const error = await tryClaim(db, tables, { queue, ids, workerId });
    if (error !== undefined && !mayLieInARow(error)) throw error;
    return error;
  }

  async #add(refused: ReadonlyMap<number, unknown>): Promise<void> {
    const { db, tables, queue } = this.#options;
    const jobs = await findRefusedJobs(db, tables, { queue, ids: [...refused.keys()] });
    for (const job of jobs) this.setAside.add({ job, error: refused.get(job.id) }, performance.now());
  }

  #giveUp(): false {
    this.setAside.forgetUntold();
    this.#searchAgainMs = performance.now() + this.#restMs;
    this.#restMs = Math.min(this.#restMs * 2, MAX_REST_MS);
    this.#streak = 0;
    this.#mostInStreak = Math.min(this.#mostInStreak * 2, MAX_STREAK);
    return false;
  }

  /** Parks a job, where the database allows that. */
  async #park(job: RefusedJob, error: unknown): Promise<void> {
    const { db, tables, queue, mayPark } = this.#options;
    // What takes too long may do so because the server is busy.
    if (!mayPark || isCancelled(error)) return;
    const { message } = describeError(error, 0);
    const record = {
      attempt: Math.max(job.attempt, 1),
      name: CLAIM_REFUSED,
      message: `The database refuses to let a worker claim this job: ${message}`,
    };
    try {
      if (!(await setAsideJob(db, tables, { queue, id: job.id, error: record }))) return;
      this.setAside.remove(job.id);
      // It may have been repaired in between.
      if ((await this.#try([job.id])) === undefined) await runJobNow(db, tables, { queue, id: job.id });
    } catch {
      // It stays as it is: claims leave it out, or it is parked.
    }
  }
}

/** Jobs that are tried together. */
interface Part {
  readonly ids: readonly number[];
  /** Whether it is known that they are refused. */
  isRefused: boolean;
  /** The other half of what was refused: where this one is accepted, that is not. */
  readonly other?: Part;
}

function halvesOf(ids: readonly number[]): readonly [Part, Part] {
  const half = ids.length >> 1;
  const other: Part = { ids: ids.slice(half), isRefused: false };
  return [{ ids: ids.slice(0, half), isRefused: false, other }, other];
}

/** Else it lies in the connection, the server, the tables, or in a lock. */
function mayLieInARow(error: unknown): boolean {
  return !isAboutTheServer(error) && !isAboutLocks(error) && !(error instanceof MissingMigrationError);
}
