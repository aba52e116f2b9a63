import type { PruneResult } from '../../queries/operate/prune-queue.ts';
import { jitter } from '../../time/jitter.ts';
import { sleep } from '../../time/sleep.ts';
import type { BackgroundPart } from '../base/background.ts';
import type { WorkerEmitter } from '../base/events.ts';
import type { Until } from '../base/until.ts';

export interface PruneOptions {
  /** Deletes at most `limit` rows. */
  readonly prune: (limit: number) => Promise<PruneResult>;
  /** What it deletes, for errors. */
  readonly what: string;
  /** The first batch comes at random within this time: workers that start together do not delete together. */
  readonly firstWithinMs: number;
  readonly events: WorkerEmitter;
}

const FIRST_WITHIN_MS = 5_000;
const PRUNE_EVERY_MS = 60_000;
/** Small: such a delete holds its locks for milliseconds, and leaves autovacuum little at a time. */
const BATCH = 1_000;
/** All workers together delete for this part of the time. */
const SHARE = 1 / 10;

/** The `firstWithinMs` of a worker: one that ends when its queues are empty may be all that prunes. */
export function firstPruneWithinMs(until: Until, withinMs = FIRST_WITHIN_MS): number {
  return until === 'empty' ? 0 : withinMs;
}

/**
 * Deletes rows that are no longer wanted in small batches. While there are more, all workers together keep
 * one connection busy for a tenth of the time: else each would delete without rest once the retention is
 * lowered.
 */
export class Pruning implements BackgroundPart {
  readonly #options: PruneOptions;

  constructor(options: PruneOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { firstWithinMs } = this.#options;
    if (firstWithinMs > 0) await sleep(Math.random() * firstWithinMs, signal);
    while (!signal.aborted) await sleep(jitter(await this.#prune()), signal);
  }

  /** Deletes a batch. Never rejects; returns how many milliseconds to rest. */
  async #prune(): Promise<number> {
    const { prune, what, events } = this.#options;
    const startMs = performance.now();
    try {
      const { pruned, workers } = await prune(BATCH);
      if (pruned < BATCH) return PRUNE_EVERY_MS;
      const tookMs = performance.now() - startMs;
      return Math.min(tookMs * (Math.max(workers, 1) / SHARE - 1), PRUNE_EVERY_MS);
    } catch (error) {
      events.emit('error', { error, during: `pruning ${what}` });
      return PRUNE_EVERY_MS;
    }
  }
}
