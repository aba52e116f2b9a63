import { withinTime } from '../../core/drivers/within-time.ts';
import { compare } from '../../core/queue/stats/compare.ts';
import type { KindRates, Percentiles, QueueRates } from '../../core/queue/stats/queue-stats.ts';
import type { Database } from '../../core/sql/executor.ts';
import { unlessMissing } from '../../core/sql/unless-missing.ts';
import { addBins, percentileOf } from './job/histogram.ts';
import type { Counted } from './queries/report-metrics.ts';
import { type SummedMetrics, sumMetrics } from './queries/sum-metrics.ts';
import type { KnownMetrics } from './sql/metrics-tables.ts';

const READ_MS = 2_000;
/** For longer times the hours are read, which are added up already. */
const MAX_BY_MINUTE = 120;

/**
 * What workers have reported in the last minutes; `undefined` when it could not be read in time, or while its
 * table is missing, as `queue.check` says: everything else can be told without it.
 */
export async function readRates(
  db: Database,
  known: KnownMetrics,
  minutes: number,
): Promise<QueueRates | undefined> {
  const steps = await unlessMissing(
    withinTime(db, known.tables, READ_MS, ({ runner }) =>
      sumMetrics(runner, known, minutes, isHourly(minutes)),
    ),
  );
  return steps && ratesIn(steps, minutes);
}

/** Adds up what was reported of some minutes, by kind and by step. */
export function ratesIn(steps: readonly SummedMetrics[], minutes: number): QueueRates {
  const stepMinutes = isHourly(minutes) ? 60 : 1;
  // Without a step there is nothing to divide.
  const covered = Math.round(steps[0]?.coveredMinutes ?? minutes);
  const sums = new Map<string, Sum>();
  const totals = new Map<number, Sum>();
  for (const step of steps) {
    const key = JSON.stringify([step.queue, step.kind]);
    const sum = sums.get(key) ?? new Sum(step.queue, step.kind);
    sums.set(key, sum);
    sum.add(step);
    const total = totals.get(step.at.getTime()) ?? new Sum('', '');
    totals.set(step.at.getTime(), total);
    total.add(step);
  }
  const kinds = [...sums.values()].map((sum) => sum.over(covered));
  return {
    minutes: covered,
    kinds: kinds.sort((a, b) => compare(a.queue, b.queue) || compare(a.kind, b.kind)),
    stepMs: stepMinutes * 60_000,
    timeline: steps.map((step) => {
      const sum = new Sum(step.queue, step.kind);
      sum.add(step);
      return { at: step.at, ...sum.over(stepMinutes) };
    }),
    // By time, as the steps are.
    totals: [...totals].map(([atMs, sum]) => {
      const { queue: _, kind: __, ...total } = sum.over(stepMinutes);
      return { at: new Date(atMs), ...total };
    }),
  };
}

function isHourly(minutes: number): boolean {
  return minutes > MAX_BY_MINUTE;
}

/** What was reported of one kind in one queue. */
class Sum {
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

  constructor(
    private readonly queue: string,
    private readonly kind: string,
  ) {}

  add(step: SummedMetrics): void {
    // The keys are those of the object above.
    for (const name of Object.keys(this.#counts) as Counted[]) this.#counts[name] += step[name];
    addBins(this.#wait, step.wait);
    addBins(this.#run, step.run);
    this.#waitMs += step.waitMs;
    this.#runMs += step.runMs;
  }

  over(minutes: number): KindRates {
    const ended = Object.values(this.#counts).reduce((sum, count) => sum + count, 0);
    return {
      queue: this.queue,
      kind: this.kind,
      ...this.#counts,
      perMinute: ended / minutes,
      wait: percentiles(this.#wait, this.#waitMs),
      run: percentiles(this.#run, this.#runMs),
    };
  }
}

function percentiles(bins: ReadonlyMap<number, number>, sumMs: number): Percentiles | undefined {
  const [p50Ms, p95Ms, p99Ms] = [0.5, 0.95, 0.99].map((share) => percentileOf(bins, share));
  if (p50Ms === undefined || p95Ms === undefined || p99Ms === undefined) return undefined;
  const count = [...bins.values()].reduce((sum, some) => sum + some, 0);
  return { count, meanMs: sumMs / count, p50Ms, p95Ms, p99Ms };
}
