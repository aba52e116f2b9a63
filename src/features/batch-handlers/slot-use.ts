import type { Handler } from '../../core/worker/run/handler.ts';

/** The weight of one job in the average: it follows the last twenty or so. */
const WEIGHT = 0.05;
/** Where a queue has handlers of single jobs, too, no more than these are expected for a slot. */
const MAX_MIXED = 20;

/**
 * How many jobs one slot takes, on average: one for the handlers of single jobs, up to `maxSize` for batch
 * handlers. Kinds come as they stand in the queue, so this is learned from what was claimed. A guess too low
 * costs one more claim; one too high would hold jobs that other workers could do.
 */
export class SlotUse {
  readonly #most: number;
  /** How much of a slot a job takes. */
  #mean: number;

  /** @param queue whose jobs they are; a job can be enqueued into another queue than its definition's, too */
  constructor(handlers: readonly Handler[], queue: string) {
    const own = handlers.filter(({ job }) => job.queue === queue);
    const sizes = (own.length > 0 ? own : handlers).map(sizeOf);
    const isMixed = sizes.includes(1);
    this.#most = isMixed ? MAX_MIXED : Math.max(...sizes);
    this.#mean = 1 / Math.min(...sizes);
  }

  note(handlers: readonly Handler[]): void {
    for (const handler of handlers) this.#mean += (1 / sizeOf(handler) - this.#mean) * WEIGHT;
  }

  get jobsPerSlot(): number {
    return Math.min(1 / this.#mean, this.#most);
  }
}

function sizeOf({ batch }: Handler): number {
  return batch?.maxSize ?? 1;
}
