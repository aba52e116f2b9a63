import type { Attempts } from '../begin/attempts.ts';
import { Bands } from './bands.ts';
import { OverlookedJobs } from './overlooked-jobs.ts';
import type { SetAside } from './set-aside.ts';
import { Sweep } from './sweep.ts';
import type { SweptQueue } from './sweeper.ts';

/** What the lanes of one queue work with. */
export interface LanesOptions {
  readonly queue: string;
  /** How long a job is due until it counts as one priority better; `undefined`: that never changes. */
  readonly agingMs: number | undefined;
  readonly attempts: Pick<Attempts, 'paused'>;
  /** The jobs that claims leave out. @default none */
  readonly setAside?: Pick<SetAside, 'has'> | undefined;
  /** How long ago the last job came, or was notified. */
  readonly quietMs: () => number;
  /** Jobs were found. */
  readonly wake: () => void;
}

/**
 * The kinds of one queue that are always claimed together: one with a limit of its own, or all without. A
 * lane without a free slot is left out of claims, and its floors stay where they are: so no backlog that must
 * wait is in the way of what could run, and nothing of it is passed over.
 */
export class Lane implements SweptQueue {
  readonly #options: LanesOptions;
  /** The one kind, if it has a limit of its own. */
  readonly limited: string | undefined;
  readonly kinds: readonly string[];
  readonly bands: Bands;
  readonly overlooked: OverlookedJobs;
  readonly sweep = new Sweep();

  constructor(options: LanesOptions, kinds: readonly string[], limited?: string) {
    this.#options = options;
    this.limited = limited;
    this.kinds = kinds;
    this.bands = new Bands(options.agingMs);
    this.overlooked = new OverlookedJobs((place) => this.bands.priorityOf(place, performance.now()));
  }

  get queue(): string {
    return this.#options.queue;
  }

  get quietMs(): number {
    return this.#options.quietMs();
  }

  get attempts(): Pick<Attempts, 'paused'> {
    return this.#options.attempts;
  }

  isSetAside(id: number): boolean {
    return this.#options.setAside?.has(id) ?? false;
  }

  wake(): void {
    this.#options.wake();
  }
}
