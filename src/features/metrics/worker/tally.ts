import { MAX_DELAY_MS } from '../../../core/job/limits.ts';
import type { EndedAttempt } from '../../../core/worker/run/ended-attempt.ts';
import { binOf } from '../job/histogram.ts';
import type { Counted, MetricsRow } from '../queries/report-metrics.ts';

/**
 * The attempts of one kind in one queue that have ended since the last report. No wait counts as more than a
 * century: a job can be due since the beginning of time, and the sum must fit its column.
 */
export class Tally {
  readonly #counts: Record<Counted, number> = {
    completed: 0,
    retried: 0,
    discarded: 0,
    cancelled: 0,
    snoozed: 0,
    interrupted: 0,
    lost: 0,
  };
  readonly #wait = new Map<number, number>();
  readonly #run = new Map<number, number>();
  #waitMs = 0;
  #runMs = 0;

  add({ as, waitMs, runMs }: EndedAttempt): void {
    this.#counts[as]++;
    if (waitMs !== undefined) {
      this.#waitMs += Math.min(waitMs, MAX_DELAY_MS);
      count(this.#wait, waitMs);
    }
    if (runMs !== undefined) {
      this.#runMs += runMs;
      count(this.#run, runMs);
    }
  }

  toRow(report: number, queue: string, kind: string): MetricsRow {
    return {
      report,
      queue,
      kind,
      ...this.#counts,
      waitMs: this.#waitMs,
      runMs: this.#runMs,
      wait: Object.fromEntries(this.#wait),
      run: Object.fromEntries(this.#run),
    };
  }
}

function count(bins: Map<number, number>, ms: number): void {
  const bin = binOf(ms);
  bins.set(bin, (bins.get(bin) ?? 0) + 1);
}
