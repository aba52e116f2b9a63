import { countJobs } from '../queries/count-jobs.ts';
import { findPauses } from '../queries/find-pauses.ts';
import { lookAtWorkers, type WorkerLine } from '../queries/look-at-workers.ts';
import { sumMetrics } from '../queries/sum-metrics.ts';
import type { LiveCounts, Precision, QueueRates } from '../queue/stats/queue-stats.ts';
import { ratesIn } from '../queue/stats/rates.ts';
import { LOOK_MS, scopeName, type Visit } from './visit.ts';

/** The counts of `queue.stats`, which a page shows as they age. */
type Ageing = Omit<LiveCounts, 'grouped'>;

/** How many live jobs there are, by state. */
export interface Counts extends Omit<Ageing, 'oldestDueMs'> {
  /** Since when the oldest due job has been due; `null` when none is. */
  readonly oldestDueAt: Date | null;
}

/** What stands in one queue. */
export interface QueueLine extends Counts {
  readonly queue: string;
  readonly pausedAt: Date | undefined;
  /** How many workers serve it. */
  readonly workers: number;
}

/** What stands in one queue of one kind. */
export interface KindLine extends Counts {
  readonly queue: string;
  readonly kind: string;
}

/** What there is to do, as far as somebody may see it. */
export interface Figures {
  readonly countedAt: Date;
  readonly total: Counts;
  /** Empty for who sees only jobs with some values of own columns. */
  readonly queues: readonly QueueLine[];
  readonly kinds: readonly KindLine[];
  /** Only for who sees everything. */
  readonly workers: number | undefined;
  /** What workers have reported of these queues; only for who sees whole queues, in a queue with metrics. */
  readonly rates: QueueRates | undefined;
}

/** The time that charts are about. */
export const MINUTES = 60;
const MAX_WORKERS = 500;

/** From the best to the worst. */
const PRECISIONS: readonly Precision[] = ['exact', 'at-least', 'estimated', 'unknown'];

/**
 * The figures of `queue.stats`, for who sees whole queues; for others a count of their own jobs, which is
 * `undefined` when it took too long.
 */
export async function figuresSeen(visit: Visit): Promise<Figures | undefined> {
  return visit.granted.scope.own.length > 0 ? await ownFigures(visit) : await wholeFigures(visit);
}

async function wholeFigures(visit: Visit): Promise<Figures> {
  const { settings, granted } = visit;
  const stats = await settings.queue.stats(settings.db, { minutes: MINUTES });
  const { countedAt } = stats;
  const isSeen = ({ queue }: { readonly queue: string }) => granted.scope.queues?.includes(queue) ?? true;
  const pauses = await pausesSeen(visit);
  const queues = stats.queues.filter(isSeen).map((counts) => ({
    ...dated(counts, countedAt),
    queue: counts.queue,
    workers: counts.workers,
    pausedAt:
      pauses === undefined ? counts.pausedAt : pauses.find(({ queue }) => queue === counts.queue)?.pausedAt,
  }));
  // Paused since the jobs were counted.
  const added = (pauses ?? [])
    .filter((pause) => isSeen(pause) && !queues.some(({ queue }) => queue === pause.queue))
    .map((pause) => ({ ...NONE, ...pause, workers: 0 }));
  return {
    countedAt,
    total: totalOf(queues),
    queues: [...queues, ...added],
    kinds: stats.kinds.filter(isSeen).map((counts) => ({
      ...dated(counts, countedAt),
      queue: counts.queue,
      kind: counts.kind,
    })),
    workers: granted.whole ? stats.workers : undefined,
    rates: granted.whole ? stats.rates : await ratesSeen(visit),
  };
}

async function ownFigures(visit: Visit): Promise<Figures | undefined> {
  const { settings, granted, looks } = visit;
  const counted = await looks.at(`live ${scopeName(visit)}`, LOOK_MS, async (db) => ({
    countedAt: new Date(),
    counts: await countJobs(db, settings.queue.tables, granted.scope),
  }));
  if (counted === undefined) return undefined;
  const { countedAt, counts } = counted;
  const kinds = counts.map((count) => ({
    ...dated({ ...count, precision: 'exact' }, countedAt),
    queue: count.queue,
    kind: count.kind,
  }));
  return {
    countedAt,
    total: totalOf(kinds),
    queues: [],
    kinds: kinds.filter(({ due, running, scheduled, waiting }) => due + running + scheduled + waiting > 0),
    workers: undefined,
    rates: undefined,
  };
}

/** What workers have reported of the queues that may be seen; read once for all who see only some. */
async function ratesSeen({ settings, granted, looks }: Visit): Promise<QueueRates | undefined> {
  const { tables, metrics } = settings.queue;
  if (metrics === undefined) return undefined;
  const reported = await looks.at(
    'reported',
    LOOK_MS,
    (db) => sumMetrics(db, { tables, metrics }, MINUTES, false),
    'slow',
  );
  const { queues } = granted.scope;
  return (
    reported &&
    ratesIn(
      reported.filter(({ queue }) => queues?.includes(queue) ?? true),
      MINUTES,
    )
  );
}

/** Pauses are shown as they are now: whoever pauses a queue wants to see it paused. */
async function pausesSeen({ settings, looks }: Visit) {
  return await looks.at('pauses', LOOK_MS, (db) => findPauses(db, settings.queue.tables), 'small');
}

/** The workers of the queues that may be seen; `undefined` when counting what they hold took too long. */
export async function workersSeen(visit: Visit): Promise<readonly WorkerLine[] | undefined> {
  const { settings, granted, looks } = visit;
  const workers = await looks.at('workers', LOOK_MS, (db) =>
    lookAtWorkers(db, settings.queue.tables, MAX_WORKERS),
  );
  const { queues } = granted.scope;
  return queues === undefined
    ? workers
    : workers?.filter((worker) => worker.queues.some((queue) => queues.includes(queue)));
}

const NONE: Counts = {
  due: 0,
  running: 0,
  scheduled: 0,
  waiting: 0,
  oldestDueAt: null,
  precision: 'exact',
};

function dated(
  { due, running, scheduled, waiting, oldestDueMs, precision }: Ageing,
  countedAt: Date,
): Counts {
  const oldestDueAt = oldestDueMs === undefined ? null : new Date(countedAt.getTime() - oldestDueMs);
  return { due, running, scheduled, waiting, oldestDueAt, precision };
}

/** The sum of some counts, as precise as the worst of them, and the oldest of their oldest jobs. */
function totalOf(counts: readonly Counts[]): Counts {
  const sum = (name: 'due' | 'running' | 'scheduled' | 'waiting') =>
    counts.reduce((total, count) => total + count[name], 0);
  const times = counts.flatMap(({ oldestDueAt }) => (oldestDueAt === null ? [] : [oldestDueAt.getTime()]));
  const worst = Math.max(0, ...counts.map(({ precision }) => PRECISIONS.indexOf(precision)));
  return {
    due: sum('due'),
    running: sum('running'),
    scheduled: sum('scheduled'),
    waiting: sum('waiting'),
    oldestDueAt: times.length === 0 ? null : new Date(times.reduce((a, b) => Math.min(a, b))),
    precision: PRECISIONS[worst] ?? 'exact',
  };
}
