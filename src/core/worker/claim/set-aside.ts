import type { RefusedJob } from '../../queries/claim/find-refused-jobs.ts';

/** A job that the database has refused to this process, and why. */
export interface JobAside {
  readonly job: RefusedJob;
  readonly error: unknown;
}

interface Remembered extends JobAside {
  readonly pauseMs: number;
  readonly againMs: number;
  /** Whether an event has reported it. */
  readonly told: boolean;
  /** Whether other jobs were claimed since. Until then it may be that all of them are refused. */
  readonly proven: boolean;
}

const FIRST_AGAIN_MS = 1_000;
const MAX_AGAIN_MS = 60_000;
/** With more than this, something is wrong that no claim should work around. */
const MAX_ASIDE = 1_000;
const NONE: readonly number[] = [];

/**
 * The jobs of one queue whose claims the database refuses, and which could not be parked: claims leave them
 * out, and the sweeper does not find them. Each is tried again after a second, then less and less often, up
 * to once a minute, so that a row that was repaired runs again.
 */
export class SetAside {
  readonly #jobs = new Map<number, Remembered>();
  #ids = NONE;
  #nextMs = Number.POSITIVE_INFINITY;

  /** The jobs that a claim must leave out. */
  get ids(): readonly number[] {
    return this.#ids;
  }

  get isFull(): boolean {
    return this.#jobs.size >= MAX_ASIDE;
  }

  has(id: number): boolean {
    return this.#jobs.size > 0 && this.#jobs.has(id);
  }

  /** In how many milliseconds one is to be tried again; `Infinity` where none is. */
  againInMs(nowMs: number): number {
    return Math.max(this.#nextMs - nowMs, 0);
  }

  /** The jobs to try again now. */
  lapsed(nowMs: number): readonly Remembered[] {
    if (nowMs < this.#nextMs) return [];
    return [...this.#jobs.values()].filter(({ againMs }) => againMs <= nowMs);
  }

  /** Sets a job aside, or leaves it there for twice as long as before. */
  add(aside: JobAside, nowMs: number): void {
    const before = this.#jobs.get(aside.job.id);
    const pauseMs = before === undefined ? FIRST_AGAIN_MS : Math.min(before.pauseMs * 2, MAX_AGAIN_MS);
    const { told = false, proven = false } = before ?? {};
    this.#jobs.set(aside.job.id, { ...aside, pauseMs, againMs: nowMs + pauseMs, told, proven });
    this.#changed();
  }

  remove(id: number): void {
    if (this.#jobs.delete(id)) this.#changed();
  }

  /**
   * A claim without these jobs was accepted. Returns the ones that no event has reported yet.
   * @param proven whether it has brought other jobs
   */
  confirm(proven: boolean): readonly JobAside[] {
    const all = [...this.#jobs.values()];
    for (const one of all) this.#jobs.set(one.job.id, { ...one, told: true, proven: one.proven || proven });
    return all.filter(({ told }) => !told);
  }

  /** Everything is refused, so nothing is known about the jobs that were set aside last. */
  forgetUntold(): void {
    for (const [id, { told }] of this.#jobs) if (!told) this.#jobs.delete(id);
    this.#changed();
  }

  #changed(): void {
    this.#ids = this.#jobs.size === 0 ? NONE : [...this.#jobs.keys()];
    this.#nextMs = Math.min(
      Number.POSITIVE_INFINITY,
      ...[...this.#jobs.values()].map(({ againMs }) => againMs),
    );
  }
}
