import type { Attempt } from './attempt.ts';

/**
 * The jobs of groups that run one after the other: of each group one waits for a slot or runs, and the others
 * that were claimed with it stand behind it, in their order.
 */
export class Runs {
  readonly #behind = new Map<string, Attempt[]>();

  /** Takes in claimed attempts; returns those that are the first of their group. */
  add(attempts: readonly Attempt[]): Attempt[] {
    return attempts.filter((attempt) => {
      const behind = this.#behind.get(groupOf(attempt));
      if (behind === undefined) this.#behind.set(groupOf(attempt), []);
      else behind.push(attempt);
      return behind === undefined;
    });
  }

  /** All that stand behind another. */
  get standing(): readonly Attempt[] {
    return [...this.#behind.values()].flat();
  }

  get size(): number {
    let size = 0;
    for (const behind of this.#behind.values()) size += behind.length;
    return size;
  }

  /** The one behind this first one, which is the first of its group from now on. */
  next(attempt: Attempt): Attempt | undefined {
    const next = this.#behind.get(groupOf(attempt))?.shift();
    if (next === undefined) this.#behind.delete(groupOf(attempt));
    return next;
  }

  /** Ends the run of this first one; returns those that stood behind it. */
  end(attempt: Attempt): Attempt[] {
    const behind = this.#behind.get(groupOf(attempt)) ?? [];
    this.#behind.delete(groupOf(attempt));
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
}

function groupOf({ job }: Attempt): string {
  return job.group ?? '';
}
