import { countLive, type LiveCount } from '../queries/count-live.ts';
import { findPauses } from '../queries/find-pauses.ts';
import { lookAtWorkers, type WorkerLine } from '../queries/look-at-workers.ts';
import { LOOK_MS, scopeName, type Visit } from './visit.ts';

/** What stands in one queue. */
export interface QueueLine {
  readonly queue: string;
  /** `undefined` where counting took too long. */
  readonly counts: Omit<LiveCount, 'queue' | 'kind'> | undefined;
  readonly pausedAt: Date | undefined;
  /** How many workers serve it. */
  readonly workers: number;
}

const MAX_WORKERS = 500;

/** The live jobs by queue and kind; `undefined` when counting took too long. */
export async function liveCounts(visit: Visit): Promise<readonly LiveCount[] | undefined> {
  const { settings, granted, looks } = visit;
  const look = await looks.at(`live ${scopeName(visit)}`, LOOK_MS, (db) =>
    countLive(db, settings.queue.tables, granted.scope),
  );
  return look.value;
}

/** The workers of the queues that may be seen; `undefined` when counting what they hold took too long. */
export async function workersSeen(visit: Visit): Promise<readonly WorkerLine[] | undefined> {
  const { settings, granted, looks } = visit;
  const { value } = await looks.at('workers', LOOK_MS, (db) =>
    lookAtWorkers(db, settings.queue.tables, MAX_WORKERS),
  );
  const { queues } = granted.scope;
  return queues === undefined
    ? value
    : value?.filter((worker) => worker.queues.some((queue) => queues.includes(queue)));
}

/** Every queue that has a live job, a pause or a worker, by name. */
export async function queueLines(visit: Visit): Promise<QueueLine[]> {
  const { settings, granted, looks } = visit;
  const counts = await liveCounts(visit);
  const workers = (await workersSeen(visit)) ?? [];
  const pauses = await looks.at('pauses', LOOK_MS, (db) => findPauses(db, settings.queue.tables));
  const names = new Set([
    ...(counts ?? []).map(({ queue }) => queue),
    ...workers.flatMap(({ queues }) => queues),
    ...(pauses.value ?? []).map(({ queue }) => queue),
  ]);
  const { queues } = granted.scope;
  return [...names]
    .filter((queue) => queues?.includes(queue) ?? true)
    .sort()
    .map((queue) => ({
      queue,
      counts: counts && totalOf(counts.filter((count) => count.queue === queue)),
      pausedAt: pauses.value?.find((pause) => pause.queue === queue)?.pausedAt,
      workers: workers.filter((worker) => worker.queues.includes(queue)).length,
    }));
}

/** The sum of some counts, and the oldest of their oldest jobs. */
export function totalOf(counts: readonly LiveCount[]): Omit<LiveCount, 'queue' | 'kind'> {
  const sum = (name: 'due' | 'running' | 'scheduled' | 'waiting') =>
    counts.reduce((total, count) => total + count[name], 0);
  const times = counts.flatMap(({ oldestDueAt }) => (oldestDueAt === null ? [] : [oldestDueAt.getTime()]));
  return {
    due: sum('due'),
    running: sum('running'),
    scheduled: sum('scheduled'),
    waiting: sum('waiting'),
    oldestDueAt: times.length === 0 ? null : new Date(Math.min(...times)),
  };
}
