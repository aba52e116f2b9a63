import type { Outcome } from '../../job/outcome.ts';
import { allowManyListeners } from '../../runtime.ts';
import type { Runner } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import { Bag } from '../base/bag.ts';
import type { Until } from '../base/until.ts';
import type { Attempt, AttemptEnvironment } from '../run/attempt.ts';
import { type ConcludeOptions, conclude, giveBack } from './conclude.ts';
import { Fates } from './fates.ts';
import { Leftovers } from './leftovers.ts';

export interface EndingsOptions
  extends Omit<ConcludeOptions, 'fates' | 'leave' | 'onLeftover' | 'onConcluded'> {
  readonly environment: Pick<AttemptEnvironment, 'db' | 'tables'>;
  /** Runs what is asked about jobs that a handler may have ended. */
  readonly questionRunner: Runner;
  readonly holder: Holder;
  /** A worker that ends once its queues are empty does not try again what the database refuses. */
  readonly until: Until;
}

/** The attempts of one queue whose outcome is being written, or that are being given back. */
export class Endings {
  readonly #conclude: ConcludeOptions;
  readonly #leaving = new AbortController();
  readonly #leftovers = new Leftovers();
  readonly #unsettled = new Bag<'placeUnsettled', Attempt>('placeUnsettled');
  readonly #onGivenBack: () => void;

  constructor(
    options: EndingsOptions,
    told: Pick<ConcludeOptions, 'onConcluded'> & { onGivenBack: () => void },
  ) {
    const { environment, questionRunner, holder } = options;
    const { tables } = environment;
    this.#conclude = {
      ...options,
      fates: new Fates({ db: questionRunner, tables, queue: holder.queue }),
      leave: this.#leaving.signal,
      onLeftover: (attempt) => this.#leftovers.add(attempt),
      onConcluded: (attempt, conclusion) => {
        this.#unsettled.delete(attempt);
        told.onConcluded(attempt, conclusion);
      },
    };
    this.#onGivenBack = told.onGivenBack;
    // Each attempt whose outcome is refused listens to it while it waits.
    allowManyListeners(this.#leaving.signal);
    if (options.until === 'empty') this.#leaving.abort();
  }

  get size(): number {
    return this.#unsettled.size;
  }

  get attempts(): Iterable<Attempt> {
    return this.#unsettled;
  }

  /** Writes how an attempt has ended, and announces it; throws nothing. */
  conclude(attempt: Attempt, outcome: Outcome, durationMs: number): void {
    this.#unsettled.add(attempt);
    conclude(this.#conclude, attempt, outcome, durationMs);
  }

  /** Puts a job back that never began: see `giveBack`. */
  giveBack(attempt: Attempt, delayMs?: number): void {
    this.#unsettled.add(attempt);
    void giveBack(this.#conclude, attempt, delayMs).then(() => {
      this.#unsettled.delete(attempt);
      this.#onGivenBack();
    });
  }

  /** What the database refuses is tried no more. */
  stop(): void {
    this.#leaving.abort();
  }

  /** Puts back what is still held at the end: what could not be written, and those that have not `begun`. */
  async giveBackLeftovers(
    unbegun: readonly Attempt[],
    ...[options, tooLate]: Parameters<Leftovers['giveBack']>
  ): Promise<void> {
    for (const attempt of unbegun) this.#leftovers.add(attempt);
    await this.#leftovers.giveBack(options, tooLate);
  }
}
