import type { Attempts } from '../begin/attempts.ts';
import { Bands } from './bands.ts';
import { OverlookedJobs } from './overlooked-jobs.ts';
import type { SetAside } from './set-aside.ts';
import { Sweep } from './sweep.ts';
import type { SweptQueue } from './sweeper.ts';

/** What a lane uses of its loop. */
export interface LanesLoop {
  readonly queue: string;
  readonly quietMs: number;
  /** How long a job is due until it counts as one priority better; `undefined`: that never changes. */
  readonly agingMs: number | undefined;
  readonly attempts: Pick<Attempts, 'paused' | 'demand' | 'demandOf'>;
  /** The jobs that claims leave out. @default none */
  readonly setAside?: Pick<SetAside, 'has'> | undefined;
  wake(): void;
}

/**
 * The kinds of one queue that are always claimed together: one with a limit of its own, or all without. A
 * lane without a free slot is left out of claims, and its floors stay where they are: so no backlog that must
 * wait is in the way of what could run, and nothing of it is passed over.
 */
export class Lane implements SweptQueue {
  readonly #loop: LanesLoop;
  readonly #limited: string | undefined;
  readonly kinds: readonly string[];
  readonly bands: Bands;
  readonly overlooked: OverlookedJobs;
  readonly sweep = new Sweep();

  /** @param limited the one kind, if it has a limit of its own */
  constructor(loop: LanesLoop, kinds: readonly string[], limited?: string) {
    this.#loop = loop;
    this.#limited = limited;
    this.kinds = kinds;
    this.bands = new Bands(loop.agingMs);
    this.overlooked = new OverlookedJobs((place) => this.bands.priorityOf(place, performance.now()));
  }

  get queue(): string {
    return this.#loop.queue;
  }

  get quietMs(): number {
    return this.#loop.quietMs;
  }

  get attempts(): Pick<Attempts, 'paused'> {
    return this.#loop.attempts;
  }

  get isLimited(): boolean {
    return this.#limited !== undefined;
  }

  /** How many jobs of these kinds to claim now. */
  get demand(): number {
    const { attempts } = this.#loop;
    return this.#limited === undefined ? attempts.demand : attempts.demandOf(this.#limited);
  }

  isSetAside(id: number): boolean {
    return this.#loop.setAside?.has(id) ?? false;
  }

  wake(): void {
    this.#loop.wake();
  }
}
