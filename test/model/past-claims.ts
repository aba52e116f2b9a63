import type { Claimed } from './endings.ts';
import { oneOf } from './one-of.ts';

/** Every claim of a job that was ever made, newest last: a worker may still believe in any of them. */
export class PastClaims {
  readonly #all: Claimed[] = [];
  readonly #settled = new Set<Claimed>();

  add(claimed: Claimed): void {
    this.#all.push(claimed);
  }

  /** Whoever has it has written how it ended, whether that counted or not. */
  settle(claimed: Claimed): void {
    this.#settled.add(claimed);
  }

  get unsettled(): Claimed[] {
    return this.#all.filter((claimed) => !this.#settled.has(claimed));
  }

  any(index: number): Claimed | undefined {
    return this.#all.length === 0 ? undefined : oneOf(this.#all, index);
  }

  anyUnsettled(index: number): Claimed | undefined {
    const { unsettled } = this;
    return unsettled.length === 0 ? undefined : oneOf(unsettled, index);
  }

  /** What one worker has in one queue, its newest claim of each job. */
  ofOneWorker(index: number): Claimed[] {
    const one = this.anyUnsettled(index);
    const together = this.unsettled.filter(
      ({ workerId, queue }) => workerId === one?.workerId && queue === one.queue,
    );
    return [...new Map(together.map((claimed) => [claimed.id, claimed])).values()];
  }
}
