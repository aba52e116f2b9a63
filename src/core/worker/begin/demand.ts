import type { Beginners } from '../../sql/claim-beginning.ts';
import type { Bag } from '../base/bag.ts';
import type { Attempt } from '../run/attempt.ts';
import type { Endings } from '../settle/endings.ts';
import type { Beginnings } from './beginnings.ts';
import type { Gate } from './gate.ts';
import type { Gathered } from './gathered.ts';
import type { Prefetch } from './prefetch.ts';
import type { Runs } from './runs.ts';
import type { Waiting } from './waiting.ts';

export interface DemandOptions {
  readonly concurrency: number;
  /** Whether jobs may be claimed at all now. */
  readonly mayClaim: () => boolean;
  /** `undefined` where a job begins as soon as a slot is free. */
  readonly gate?: Gate | undefined;
  readonly prefetch: Prefetch;
  readonly beginnings: Beginnings;
  readonly batches: Gathered;
  readonly runs: Runs;
  readonly waiting: Waiting;
  readonly running: Bag<'placeRunning', Attempt>;
  readonly endings: Endings;
}

/** Handlers may run this far ahead of the settling. */
const MAX_UNSETTLED = 4_000;

/** How many jobs of one queue to claim, and which of them begin with their claim. */
export class Demand {
  readonly #options: DemandOptions;

  constructor(options: DemandOptions) {
    this.#options = options;
  }

  /** How many jobs to claim now; 0 when there is enough to do, while it is paused, and once it is stopped. */
  get size(): number {
    const { mayClaim, prefetch, beginnings, batches, endings, waiting, gate } = this.#options;
    if (!mayClaim() || endings.size >= MAX_UNSETTLED || beginnings.isFailing) return 0;
    const slots = this.#slots;
    const ahead = prefetch.size(slots, batches.jobsPerSlot);
    const here = waiting.unhindered.length;
    // Refilled when half empty, so that a claim is worth its round trip.
    if (here > ahead / 2) return 0;
    const free = this.#freeOf(slots);
    const wanted = batches.demand(free, ahead) - here;
    return gate === undefined ? wanted : Math.min(wanted, gate.mostMore);
  }

  /** How many jobs of one kind to claim now, where that has a limit of its own. */
  ofKind(kind: string): number {
    const { gate, prefetch, batches } = this.#options;
    const { slots, held, mostMore } = gate?.ofKind(kind) ?? { slots: 0, held: 0, mostMore: 0 };
    const ahead = batches.gathers(kind) ? prefetch.size(slots) : prefetch.sizeOfKind(kind, slots);
    return Math.min(this.size, slots + ahead - held, mostMore);
  }

  /** How many jobs of a group to claim at once, where they run one after the other. */
  get perGroup(): number | undefined {
    const { runs, prefetch } = this.#options;
    return runs.areServed ? prefetch.run() : undefined;
  }

  get beginning(): 0 | 1 | Beginners {
    const { beginnings, batches, waiting, running } = this.#options;
    // Jobs of a batch handler begin when they have gathered.
    if (batches.serves) return 0;
    return beginnings.ofClaim(waiting.ahead, running, this.#slots, this.soon);
  }

  /** The waiting attempts that will not begin in time, by what is known of their kinds. */
  get late(): readonly Attempt[] {
    const { unhindered } = this.#options.waiting;
    const kinds = unhindered.map(({ job }) => job.kind);
    const slots = this.#slots;
    return unhindered.slice(this.#options.prefetch.inTime(kinds, slots, this.#freeOf(slots)));
  }

  get free(): number {
    return this.#freeOf(this.#options.concurrency);
  }

  /** How many attempts that wait, or are claimed now, will be called soon. */
  get soon(): number {
    return this.#options.prefetch.soon(this.#slots, this.#freeOf(this.#slots));
  }

  /** How many handlers there may soon be room for. */
  get #slots(): number {
    return this.#options.gate?.slots ?? this.#options.concurrency;
  }

  #freeOf(slots: number): number {
    const { running, batches } = this.#options;
    return slots - running.size + batches.sharing;
  }
}
