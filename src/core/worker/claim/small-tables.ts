import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { isDistributed } from '../../sql/statement-context.ts';
import type { WorkerRunner } from '../statements/statements.ts';

/**
 * How long a table that was found too large is not tested again. One that has grown stays large, unless a
 * vacuum finds its end empty.
 */
const LARGE_MS = 10_000;

/** What a worker has lately seen of the size of its tables: in small ones claims may keep their plans. */
export class SmallTables {
  readonly #runner: WorkerRunner;
  readonly #tables: QueueTables;
  /** When one was last found too large for a kept plan. */
  #foundLargeMs = Number.NEGATIVE_INFINITY;

  constructor({ runner, tables }: { readonly runner: WorkerRunner; readonly tables: QueueTables }) {
    this.#runner = runner;
    this.#tables = tables;
  }

  /** Whether a claim by a kept plan is worth a try. */
  get areLikely(): boolean {
    if (this.#runner.prepares !== true || isDistributed(this.#tables)) return false;
    return performance.now() - this.#foundLargeMs > LARGE_MS;
  }

  noteLarge(): void {
    this.#foundLargeMs = performance.now();
  }
}
