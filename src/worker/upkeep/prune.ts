import { pruneResults } from '../../queries/prune-results.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database } from '../../sql/executor.ts';
import type { WorkerEmitter } from '../attempt/events.ts';
import type { BackgroundPart } from '../background.ts';
import { sleep } from '../time/sleep.ts';

export interface PruneOptions {
  readonly db: Database;
  readonly tables: QueueTables;
  /** `Infinity` keeps results for ever. */
  readonly retentionMs: number;
  readonly events: WorkerEmitter;
}

const PRUNE_EVERY_MS = 60_000;
/** Small: such a delete holds its locks for milliseconds, and leaves autovacuum little at a time. */
const BATCH = 1_000;

/** Deletes results that are older than the retention, a small batch at a time. */
export class Pruning implements BackgroundPart {
  readonly #options: PruneOptions;

  constructor(options: PruneOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { db, tables, retentionMs, events } = this.#options;
    if (retentionMs === Number.POSITIVE_INFINITY) return;
    while (!signal.aborted) {
      let pruned = 0;
      try {
        pruned = await pruneResults(db, tables, { retentionMs, limit: BATCH });
      } catch (error) {
        events.emit('error', { error, during: 'pruning results' });
      }
      // A full batch means that there may be more.
      if (pruned < BATCH) await sleep(PRUNE_EVERY_MS * (0.75 + Math.random() / 2), signal);
    }
  }
}
