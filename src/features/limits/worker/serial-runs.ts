import type { Outcome } from '../../../core/job/outcome.ts';
import type { Runs } from '../../../core/worker/begin/runs.ts';
import type { Attempt } from '../../../core/worker/run/attempt.ts';
import type { Conclusion } from '../../../core/worker/settle/endings.ts';
import type { Serial } from '../settings/limit-settings.ts';

/**
 * The jobs of groups that run one after the other: of each group one waits for a slot or runs, and the others
 * that were claimed with it stand behind it, in their order.
 */
export class SerialRuns implements Runs {
  readonly areServed = true;
  readonly #serial: Serial;
  readonly #behind = new Map<string, Attempt[]>();
  /** Counted as they come and go: it is asked at each end, of thousands of groups. */
  #size = 0;

  constructor(serial: Serial) {
    this.#serial = serial;
  }

  add(attempts: readonly Attempt[]): readonly Attempt[] {
    return attempts.filter((attempt) => {
      const behind = this.#behind.get(groupOf(attempt));
      if (behind === undefined) this.#behind.set(groupOf(attempt), []);
      else {
        behind.push(attempt);
        this.#size++;
      }
      return behind === undefined;
    });
  }

  get standing(): readonly Attempt[] {
    return [...this.#behind.values()].flat();
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Whether the next one may begin before the end of this one is written. After a crash all that was not
   * written runs again, in order.
   */
  goesOn({ type }: Outcome): boolean {
    return type === 'completed';
  }

  goesOnAfter(conclusion: Conclusion): boolean {
    return conclusion === 'over' || (conclusion === 'not over' && this.#serial === 'attempt');
  }

  next(attempt: Attempt): Attempt | undefined {
    const next = this.#behind.get(groupOf(attempt))?.shift();
    if (next === undefined) this.#behind.delete(groupOf(attempt));
    else this.#size--;
    return next;
  }

  end(attempt: Attempt): readonly Attempt[] {
    const behind = this.cut(attempt);
    this.#behind.delete(groupOf(attempt));
    return behind;
  }

  cut(attempt: Attempt): readonly Attempt[] {
    const behind = this.#behind.get(groupOf(attempt)) ?? [];
    if (behind.length > 0) this.#behind.set(groupOf(attempt), []);
    this.#size -= behind.length;
    return behind;
  }

  drop(attempts: ReadonlySet<Attempt>): void {
    for (const [group, behind] of this.#behind) {
      const left = behind.filter((attempt) => !attempts.has(attempt));
      if (left.length === behind.length) continue;
      this.#behind.set(group, left);
      this.#size -= behind.length - left.length;
    }
  }

  takeAll(): readonly Attempt[] {
    const { standing } = this;
    for (const group of this.#behind.keys()) this.#behind.set(group, []);
    this.#size = 0;
    return standing;
  }
}

function groupOf({ job }: Attempt): string {
  return job.group ?? '';
}
