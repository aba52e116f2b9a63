import type { Runner } from '../../../core/sql/executor.ts';
import { jitter } from '../../../core/time/jitter.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import type { Until } from '../../../core/worker/base/until.ts';
import { foldMetrics } from '../queries/fold-metrics.ts';
import type { KnownMetrics } from '../sql/metrics-tables.ts';

export interface HourlyTotalsOptions {
  readonly db: Runner;
  readonly known: KnownMetrics;
  readonly events: WorkerEmitter;
  /** Whether it ends when nothing is due: then it may be all that adds up. */
  readonly until: Until;
}

const FIRST_WITHIN_MS = 5_000;
const FOLD_EVERY_MS = 300_000;

/** Adds up the reports of each hour once it is over, and at the start those of the hours without a worker. */
export class HourlyTotals implements BackgroundPart {
  readonly #options: HourlyTotalsOptions;

  constructor(options: HourlyTotalsOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { db, known, events, until } = this.#options;
    // Workers that start together do not fold together.
    if (until === 'stopped') await sleep(Math.random() * FIRST_WITHIN_MS, signal);
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
