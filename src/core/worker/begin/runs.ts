import type { Outcome } from '../../job/outcome.ts';
import type { Attempt } from '../run/attempt.ts';
import type { Conclusion } from '../settle/endings.ts';

/**
 * Jobs of one queue that run one after the other: the first waits for a slot or runs, and those that were
 * claimed with it stand behind it, in their order.
 */
export interface Runs {
  /** Whether jobs of the queue run one after the other at all. */
  readonly areServed: boolean;
  /** How many stand behind another. */
  readonly size: number;
  /** All that stand behind another. */
  readonly standing: readonly Attempt[];
  /** Takes in claimed attempts; returns those that stand behind none. */
  add(attempts: readonly Attempt[]): readonly Attempt[];
  /** Whether the next one may begin before the end of this one is written. */
  goesOn(outcome: Outcome): boolean;
  /** Whether the next one may begin, or go on, when the end is written. */
  goesOnAfter(conclusion: Conclusion): boolean;
  /** The one behind this first one, which is the first from now on. */
  next(attempt: Attempt): Attempt | undefined;
  /** Ends the run of this first attempt; returns those that waited behind it. */
  end(attempt: Attempt): readonly Attempt[];
  /** Removes and returns what waits behind the first of this one's run, which may be another by now. */
  cut(attempt: Attempt): readonly Attempt[];
  /** Forgets attempts that wait behind another. */
  drop(attempts: ReadonlySet<Attempt>): void;
  /** Removes and returns all attempts that wait behind another. */
  takeAll(): readonly Attempt[];
}

const NONE: readonly Attempt[] = [];

/** Of a queue whose jobs wait for no other. */
export const NO_RUNS: Runs = {
  areServed: false,
  size: 0,
  standing: NONE,
  add: (attempts) => attempts,
  goesOn: () => false,
  goesOnAfter: () => true,
  next: () => undefined,
  end: () => NONE,
  cut: () => NONE,
  drop: () => undefined,
  takeAll: () => NONE,
};
