import type { MetricsTables } from '../../features/metrics/schema/index.ts';
import type { LiveCounts, Precision, QueueRates } from '../../index.ts';
import {
  type CountedRetrying,
  countJobs,
  countRetrying,
  figuresOf,
  isOldestUnknown,
  lookAtWorkers,
  ratesIn,
  sumMetrics,
  unlessMissing,
  type WorkerLine,
} from '../../internal.ts';
import { LOOK_MS, scopeName, type Visit } from './visit.ts';

/** The counts of `queue.stats`, which a page shows as they age. */
type Ageing = Omit<LiveCounts, 'grouped'>;

/** How many live jobs there are, by state. */
export interface Counts extends Omit<Ageing, 'oldestDueMs'> {
  /** Since when the oldest due job has been due; `null` when none is, `undefined` when it is not known. */
  readonly oldestDueAt: Date | null | undefined;
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

/** How many jobs wait for another attempt after a failed one. */
export interface Retrying {
  readonly jobs: number;
  readonly precision: Precision;
}

/** What there is to do, as far as the user may see it. */
export interface Figures {
  readonly countedAt: Date;
  readonly total: Counts;
  /** Empty for a user who sees only jobs with certain values of own columns. */
  readonly queues: readonly QueueLine[];
  readonly kinds: readonly KindLine[];
  /** Only for a user who sees everything. */
  readonly workers: number | undefined;
  /** How many jobs wait for another attempt after a failed one; `undefined`: not known. */
  readonly retrying: Retrying | undefined;
  /**
   * What workers have reported about these queues; only for a user who sees whole queues, and with metrics.
   */
  readonly rates: QueueRates | undefined;
  /** Whether the queue has metrics that could not be read. */
  readonly unreported: boolean;
}

/** The time that charts are about. */
export const MINUTES = 60;
const MAX_WORKERS = 500;
/** For this long a process shows first figures that are available at once. */
const FIRST_MS = 10_000;

/** From the best to the worst. */
const PRECISIONS: readonly Precision[] = ['exact', 'at-least', 'estimated', 'unknown'];

/**
 * The figures of `queue.stats` for a user who sees whole queues; for others a count of their own jobs, which
 * is `undefined` when it took too long.
 */
export async function figuresSeen(visit: Visit): Promise<Figures | undefined> {
  return visit.granted.scope.own.length > 0 ? await ownFigures(visit) : await wholeFigures(visit);
}

async function wholeFigures(visit: Visit): Promise<Figures> {
  const { settings, granted } = visit;
  boundFirstCount(visit);
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
  const rates = granted.whole ? stats.rates : await ratesSeen(visit);
  return {
    countedAt,
    total: totalOf(queues),
    queues: [...queues, ...added],
    kinds: stats.kinds.filter(isSeen).map((counts) => ({
      ...dated(counts, countedAt),
      queue: counts.queue,
      kind: counts.kind,
    })),
    retrying: retryingOf(stats.retrying && { ...stats.retrying, kinds: stats.retrying.kinds.filter(isSeen) }),
    workers: granted.whole ? stats.workers : undefined,
    rates,
    unreported: settings.queue.metrics !== undefined && rates === undefined,
  };
}

/** Counting a million jobs takes a second, too long to wait for a page: the first count is bounded. */
export function boundFirstCount({ settings }: Visit): void {
  const known = figuresOf(settings.db, settings.queue.tables);
  if (known.exactAgainAt === 0) known.exactAgainAt = performance.now() + FIRST_MS;
}

async function ownFigures(visit: Visit): Promise<Figures | undefined> {
  const { settings, granted, looks } = visit;
  const counted = await looks.at(`live ${scopeName(visit)}`, LOOK_MS, async (db) => ({
    countedAt: new Date(),
    counts: await countJobs(db, settings.queue.tables, granted.scope),
    retrying: await countRetrying(db, settings.queue.tables, granted.scope),
  }));
  if (counted === undefined) return undefined;
  const { countedAt, counts, retrying } = counted;
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
    retrying: retryingOf(retrying),
    workers: undefined,
    rates: undefined,
    unreported: false,
  };
}

/** What workers have reported of the queues that may be seen; read once for all who see only some. */
async function ratesSeen({ settings, granted, looks }: Visit): Promise<QueueRates | undefined> {
  const { tables } = settings.queue;
  // `createQueue` has put it there, or nothing.
  const metrics = settings.queue.metrics as MetricsTables['queueMetrics'] | undefined;
  if (metrics === undefined) return undefined;
  const reported = await unlessMissing(
    looks.at('reported', LOOK_MS, (db) => sumMetrics(db, { tables, metrics }, MINUTES, false), 'slow'),
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

/** Pauses are shown as they are now: a user who pauses a queue wants to see it paused. */
async function pausesSeen({ settings, looks }: Visit) {
  return await looks.at('pauses', LOOK_MS, (db) => settings.queue.paused(db), 'small');
}

/** The workers of the queues that may be seen; `undefined` when counting what they hold took too long. */
export async function workersSeen(visit: Visit): Promise<readonly WorkerLine[] | undefined> {
  const { settings, granted, looks } = visit;
  const look = { queues: granted.scope.queues, limit: MAX_WORKERS };
  return await looks.at(`workers ${scopeName(visit)}`, LOOK_MS, (db) =>
    lookAtWorkers(db, settings.queue.tables, look),
  );
}

function retryingOf(counted: CountedRetrying | undefined): Retrying | undefined {
  if (counted === undefined) return undefined;
  const jobs = counted.kinds.reduce((sum, kind) => sum + kind.jobs, 0);
  return { jobs, precision: counted.isLeast ? 'at-least' : 'exact' };
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
  const none = isOldestUnknown({ due, oldestDueMs, precision }) ? undefined : null;
  const oldestDueAt = oldestDueMs === undefined ? none : new Date(countedAt.getTime() - oldestDueMs);
  return { due, running, scheduled, waiting, oldestDueAt, precision };
}

/** The sum of some counts, as precise as the worst of them, and the oldest of their oldest known jobs. */
function totalOf(counts: readonly Counts[]): Counts {
  const sum = (name: 'due' | 'running' | 'scheduled' | 'waiting') =>
    counts.reduce((total, count) => total + count[name], 0);
  const times = counts.flatMap(({ oldestDueAt }) => (oldestDueAt ? [oldestDueAt.getTime()] : []));
  const none = counts.some(({ oldestDueAt }) => oldestDueAt === undefined) ? undefined : null;
  const worst = Math.max(0, ...counts.map(({ precision }) => PRECISIONS.indexOf(precision)));
  return {
    due: sum('due'),
    running: sum('running'),
    scheduled: sum('scheduled'),
    waiting: sum('waiting'),
    oldestDueAt: times.length === 0 ? none : new Date(times.reduce((a, b) => Math.min(a, b))),
    precision: PRECISIONS[worst] ?? 'exact',
  };
}
