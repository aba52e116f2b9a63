import { checkOptions, namesOf } from '../../job/known-options.ts';
import { checkInteger } from '../../job/limits.ts';
import { COUNTED_RESULTS, type CountedResults } from '../../queries/operate/count-results.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Database, NO_DATABASE } from '../../sql/executor.ts';
import { NO_JOBS } from '../../sql/live-counts.ts';
import { compare } from './compare.ts';
import { countLive, type LastRead, type LiveFigures } from './count-live.ts';
import { figuresOf } from './known-figures.ts';
import type {
  KindCounts,
  Precision,
  QueueCounts,
  QueueRates,
  QueueStats,
  StatsOptions,
} from './queue-stats.ts';
import type { ReportedRates } from './reported-rates.ts';
import { workersOf } from './workers-of.ts';

export interface QueueOfFigures {
  readonly tables: QueueTables;
  readonly reported: ReportedRates | undefined;
}

const OPTIONS = namesOf<StatsOptions>({ minutes: true });
const MAX_MINUTES = 43_200;

/** See `Queue.stats`. */
export async function stats(db: Database, queue: QueueOfFigures, options: StatsOptions): Promise<QueueStats> {
  const { minutes = 15 } = checkOptions('stats: options', options, OPTIONS);
  checkInteger('stats: minutes', minutes, 1, MAX_MINUTES);
  checkCanBegin(db);
  const counted = await liveFigures(db, queue);
  // While a table is locked there are not suddenly no workers.
  const live = { ...counted, ...figuresOf(db, queue.tables).lastRead };
  const rates = await ratesOf(db, queue, minutes);
  const queues = queuesOf(live);
  const kinds = kindsOf(live);
  const { read, since } = ofResults(live.results);
  return {
    countedAt: live.countedAt,
    tookMs: live.tookMs,
    estimated: queues.some(({ precision }) => precision !== 'exact'),
    queues,
    workers: live.crews.reduce((sum, { workers }) => sum + workers, 0),
    kinds,
    results: { read, truncated: read >= COUNTED_RESULTS, since },
    retrying: live.retrying,
    rates,
  };
}

/** For callers without TypeScript. @throws TypeError unless it can begin a transaction */
export function checkCanBegin(db: Database): void {
  if (typeof db?.execute !== 'function' || typeof db.transaction !== 'function') {
    throw new TypeError(NO_DATABASE);
  }
}

/** What there is to do, shared by all who ask. */
export async function liveFigures(db: Database, queue: QueueOfFigures): Promise<LiveFigures> {
  const known = figuresOf(db, queue.tables);
  return await known.live.get(async () => {
    const counted = await countLive(db, queue, known);
    known.remember(counted);
    return counted;
  });
}

/** What workers have reported, shared by all who ask for as many minutes; `undefined` without metrics. */
export async function ratesOf(
  db: Database,
  { tables, reported }: QueueOfFigures,
  minutes: number,
): Promise<QueueRates | undefined> {
  if (reported === undefined) return undefined;
  const shared = figuresOf(db, tables).ratesOf(minutes);
  return await shared.get(() => reported.read(db, tables, minutes));
}

/** Live figures, with what was last read in place of what could not be. */
type Figures = Omit<LiveFigures, keyof LastRead> & LastRead;

/** With those that have no live jobs, but a worker or a pause. */
function queuesOf(figures: Figures): QueueCounts[] {
  const { queues, crews, pauses } = figures;
  const served = crews.flatMap((crew) => crew.queues);
  const names = new Set([...queues.keys(), ...served, ...pauses.map(({ queue }) => queue)]);
  return [...names].sort(compare).map((queue) => ({
    queue,
    ...(queues.get(queue) ?? { ...NO_JOBS, precision: precisionOfNone(figures, queue) }),
    pausedAt: pauses.find((pause) => pause.queue === queue)?.pausedAt,
    workers: workersOf(crews, queue),
  }));
}

/** How exact it is that a queue has no jobs, where none were counted. */
function precisionOfNone({ queues, hasAllQueues }: Figures, queue: string): Precision {
  const isCounted = queues.has(queue) ? queues.get(queue)?.precision === 'exact' : hasAllQueues;
  return isCounted ? 'exact' : 'unknown';
}

function kindsOf(figures: Figures): KindCounts[] {
  const { kinds, results, crews } = figures;
  const found = new Map<string, KindCounts>();
  const keyOf = (queue: string, kind: string) => JSON.stringify([queue, kind]);
  for (const { killers: _, ...counts } of kinds) {
    const { queue, kind } = counts;
    const workers = workersOf(crews, queue, kind);
    found.set(keyOf(queue, kind), { ...counts, workers, discarded: 0 });
  }
  for (const { queue, kind, discarded } of results) {
    const counts = found.get(keyOf(queue, kind)) ?? {
      ...{ queue, kind, ...NO_JOBS, precision: precisionOfNone(figures, queue) },
      workers: workersOf(crews, queue, kind),
    };
    if (discarded > 0 || 'discarded' in counts) found.set(keyOf(queue, kind), { ...counts, discarded });
  }
  return [...found.values()].sort((a, b) => compare(a.queue, b.queue) || compare(a.kind, b.kind));
}

function ofResults(results: readonly CountedResults[]): { read: number; since: Date | undefined } {
  const times = results.map(({ since }) => since.getTime());
  return {
    read: results.reduce((sum, { read }) => sum + read, 0),
    since: times.length === 0 ? undefined : new Date(Math.min(...times)),
  };
}
