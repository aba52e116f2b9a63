import type { Runner } from '../../../core/sql/executor.ts';
import { jitter } from '../../../core/time/jitter.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { foldMetrics } from '../queries/fold-metrics.ts';
import type { KnownMetrics } from '../sql/metrics-tables.ts';

export interface FoldingOptions {
  readonly db: Runner;
  readonly known: KnownMetrics;
  readonly events: WorkerEmitter;
}

const FOLD_EVERY_MS = 300_000;

/** Adds up the reports of each hour once it is over, and at the start those of the hours without a worker. */
export class Folding implements BackgroundPart {
  readonly #options: FoldingOptions;

  constructor(options: FoldingOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { db, known, events } = this.#options;
    // Workers that start together do not fold together.
    await sleep(Math.random() * 5_000, signal);
    while (!signal.aborted) {
      try {
        while (!signal.aborted && (await foldMetrics(db, known)));
      } catch (error) {
        events.emit('error', { error, during: 'folding metrics' });
      }
      await sleep(jitter(FOLD_EVERY_MS), signal);
    }
  }
}
