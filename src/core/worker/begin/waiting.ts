import type { Attempt } from '../run/attempt.ts';
import type { Beginnings } from './beginnings.ts';
import type { Gate } from './gate.ts';
import type { Gathered } from './gathered.ts';
import type { Runs } from './runs.ts';

export interface WaitingOptions {
  readonly beginnings: Beginnings;
  readonly batches: Gathered;
  readonly runs: Runs;
  /** `undefined` where a job begins as soon as a slot is free. */
  readonly gate?: Gate | undefined;
}

/** The attempts of one queue that have not begun: claimed ahead, gathering, or behind another. */
export class Waiting {
  readonly #options: WaitingOptions;
  /** The attempts that wait for a slot of their own, in their order. */
  #ahead: Attempt[] = [];

  constructor(options: WaitingOptions) {
    this.#options = options;
  }

  /** The attempts that wait for a slot of their own, in their order. */
  get ahead(): readonly Attempt[] {
    return this.#ahead;
  }

  /** The attempts among them that wait for no slot or start of their own kind, and hold up others. */
  get unhindered(): readonly Attempt[] {
    const heldUp = this.#options.gate?.heldUp;
    if (heldUp === undefined || heldUp.size === 0) return this.#ahead;
    return this.#ahead.filter(({ job }) => !heldUp.has(job.kind));
  }

  /** The attempts that may be given back now: none that stands behind another. */
  get all(): readonly Attempt[] {
    return [...this.#ahead, ...this.#options.batches.waiting];
  }

  get size(): number {
    const { runs, batches } = this.#options;
    return this.#ahead.length + runs.size + batches.gathered;
  }

  /** All attempts that have not begun, even if their beginning is being recorded. */
  get unbegun(): readonly Attempt[] {
    const { runs, batches } = this.#options;
    return [...this.#ahead, ...batches.beginning, ...runs.standing];
  }

  /** Takes in claimed attempts, in their order. */
  add(claimed: readonly Attempt[]): void {
    const { beginnings, batches, runs } = this.#options;
    const attempts = batches.add(runs.add(claimed));
    const nowMs = performance.now();
    for (const attempt of attempts) attempt.waitsSinceMs = nowMs;
    this.#ahead.push(...attempts);
    beginnings.add(attempts);
  }

  /** Since when the one that has waited longest for a slot of its own waits; `Infinity` if none does. */
  get sinceMs(): number {
    let sinceMs = Number.POSITIVE_INFINITY;
    for (const { waitsSinceMs } of this.#ahead) sinceMs = Math.min(sinceMs, waitsSinceMs);
    return sinceMs;
  }

  /** The first attempt that has a slot of its limits; recorded ones only, where they must be called first. */
  get first(): Attempt | undefined {
    const first = this.#firstOf(this.#ahead);
    const before = first && this.#options.beginnings.before(first, this.#ahead);
    return before === undefined ? first : this.#firstOf(before);
  }

  /** Begun attempts for whose call the first one waits, and whose kind has no slot or start. */
  get blocking(): readonly Attempt[] {
    const { gate, beginnings } = this.#options;
    const heldUp = gate?.heldUp;
    if (heldUp === undefined || heldUp.size === 0) return [];
    const first = this.#firstOf(this.#ahead);
    const before = first && beginnings.before(first, this.#ahead);
    return before?.filter(({ job }) => heldUp.has(job.kind)) ?? [];
  }

  #firstOf(waiting: readonly Attempt[]): Attempt | undefined {
    const { gate } = this.#options;
    return gate === undefined ? waiting[0] : gate.next(waiting);
  }

  /** Takes out one attempt, whose handler is called now; false where that is not allowed. */
  begin(attempt: Attempt): boolean {
    const { beginnings, gate } = this.#options;
    if (!attempt.mayBegin || gate?.begin(attempt.job) === false) return false;
    if (this.#ahead[0] === attempt) this.#ahead.shift();
    else this.#ahead.splice(this.#ahead.indexOf(attempt), 1);
    beginnings.delete(attempt);
    return true;
  }

  /** Lets the one behind this attempt, if any, wait for a slot, first of all. */
  releaseNext(attempt: Attempt): void {
    const { beginnings, runs } = this.#options;
    const next = runs.next(attempt);
    if (next === undefined) return;
    next.waitsSinceMs = performance.now();
    this.#ahead.unshift(next);
    beginnings.add([next]);
  }

  drop(attempts: readonly Attempt[]): void {
    const { beginnings, batches } = this.#options;
    for (const attempt of attempts) beginnings.delete(attempt);
    const dropped = new Set(attempts);
    this.#ahead = this.#ahead.filter((attempt) => !dropped.has(attempt));
    batches.drop(dropped);
  }

  /** Forgets attempts whose jobs are lost. Takes out those behind them, which must not begin before them. */
  dropLost(lost: readonly Attempt[]): readonly Attempt[] {
    const { runs } = this.#options;
    runs.drop(new Set(lost));
    const waited = new Set(this.#ahead);
    this.drop(lost);
    return lost.flatMap((attempt) => (waited.has(attempt) ? runs.end(attempt) : runs.cut(attempt)));
  }

  /**
   * Takes out the attempts that are to be given back, and those behind them, which would begin before them.
   * Attempts that are being recorded follow later.
   */
  take(attempts: readonly Attempt[] = this.all): readonly Attempt[] {
    const { beginnings } = this.#options;
    const taken = attempts.filter((attempt) => !beginnings.isRecordingOf(attempt));
    this.drop(taken);
    return [...taken, ...taken.flatMap((attempt) => this.#options.runs.end(attempt))];
  }

  /**
   * Takes out those behind this one that have not begun: its job may run elsewhere, or again, before them.
   * @param wentOn whether the next one was let go on at the end of this one's handler: it may wait for a slot
   */
  takeBehind(attempt: Attempt, wentOn: boolean): readonly Attempt[] {
    if (!wentOn) return this.#options.runs.end(attempt);
    const first = this.#ahead.find(({ job }) => job.group === attempt.job.group);
    const taken = first === undefined ? [] : this.take([first]);
    return [...taken, ...this.#options.runs.cut(attempt)];
  }

  /** Also those that stand behind one that runs. */
  takeAll(): readonly Attempt[] {
    return [...this.take(), ...this.#options.runs.takeAll()];
  }
}
