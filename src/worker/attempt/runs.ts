import type { Outcome } from '../../job/outcome.ts';
import type { Serial } from '../../sql/grouping.ts';
import type { Attempt } from './attempt.ts';
import type { Conclusion } from './conclude.ts';

/**
 * The jobs of groups that run one after the other: of each group one waits for a slot or runs, and the others
 * that were claimed with it stand behind it, in their order. Without such groups nobody stands behind
 * another.
 */
export class Runs {
  readonly #serial: Serial | undefined;
  readonly #behind = new Map<string, Attempt[]>();

  constructor(serial: Serial | undefined) {
    this.#serial = serial;
  }

  get areServed(): boolean {
    return this.#serial !== undefined;
  }

  /** Takes in claimed attempts; returns those that are the first of their group. */
  add(attempts: readonly Attempt[]): readonly Attempt[] {
    if (this.#serial === undefined) return attempts;
    return attempts.filter((attempt) => {
      const behind = this.#behind.get(groupOf(attempt));
      if (behind === undefined) this.#behind.set(groupOf(attempt), []);
      else behind.push(attempt);
      return behind === undefined;
    });
  }

  /** All that stand behind another. */
  get standing(): readonly Attempt[] {
    return this.#serial === undefined ? [] : [...this.#behind.values()].flat();
  }

  get size(): number {
    if (this.#serial === undefined) return 0;
    let size = 0;
    for (const behind of this.#behind.values()) size += behind.length;
    return size;
  }

  /**
   * Whether the next one may begin before the end of this one is written. After a crash all that was not
   * written runs again, in order.
   */
  goesOn({ type }: Outcome): boolean {
    return type === 'completed';
  }

  /** Whether the next one may begin, or go on, when the end is written. */
  goesOnAfter(conclusion: Conclusion): boolean {
    return conclusion === 'over' || (conclusion === 'not over' && this.#serial === 'attempt');
  }

  /** The one behind this first one, which is the first of its group from now on. */
  next(attempt: Attempt): Attempt | undefined {
    if (this.#serial === undefined) return undefined;
    const next = this.#behind.get(groupOf(attempt))?.shift();
    if (next === undefined) this.#behind.delete(groupOf(attempt));
    return next;
  }

  /** Ends the run of this first one; returns those that stood behind it. */
  end(attempt: Attempt): readonly Attempt[] {
    const behind = this.cut(attempt);
    this.#behind.delete(groupOf(attempt));
    return behind;
  }

  /** Takes out what stands behind the first one of this one's group, which may be another by now. */
  cut(attempt: Attempt): readonly Attempt[] {
    const behind = this.#behind.get(groupOf(attempt)) ?? [];
    if (behind.length > 0) this.#behind.set(groupOf(attempt), []);
    return behind;
  }

  /** Forgets attempts that stand behind another. */
  drop(attempts: ReadonlySet<Attempt>): void {
    for (const [group, behind] of this.#behind) {
      if (behind.some((attempt) => attempts.has(attempt))) {
        this.#behind.set(
          group,
          behind.filter((attempt) => !attempts.has(attempt)),
        );
      }
    }
  }

  /** All that stand behind another; from now on none does. */
  takeAll(): readonly Attempt[] {
    const { standing } = this;
    for (const group of this.#behind.keys()) this.#behind.set(group, []);
    return standing;
  }
}

function groupOf({ job }: Attempt): string {
  return job.group ?? '';
}
