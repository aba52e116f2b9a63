import { withinTime } from '../../drivers/within-time.ts';
import { type CountedKind, countJobs } from '../../queries/operate/count-jobs.ts';
import { type CountedResults, countResults } from '../../queries/operate/count-results.ts';
import { type CountedRetrying, countRetrying } from '../../queries/operate/count-retrying.ts';
import { COUNTED_JOBS, countSomeJobs } from '../../queries/operate/count-some-jobs.ts';
import { estimateJobs } from '../../queries/operate/estimate-jobs.ts';
import { type Crew, findCrews } from '../../queries/operate/find-crews.ts';
import { findHeads, type Head, type Heads } from '../../queries/operate/find-heads.ts';
import { findPauses, type PausedQueue } from '../../queries/operate/find-pauses.ts';
import { sizeOfTables } from '../../queries/operate/size-of-tables.ts';
import { isCitus } from '../../queries/presence/is-citus.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database, Executor } from '../../sql/executor.ts';
import { NO_JOBS } from '../../sql/live-counts.ts';
import type { LiveCounts, Precision } from './queue-stats.ts';
import type { ReportedRates } from './reported-rates.ts';
import type { Rest } from './rest.ts';

/** What was counted of the live jobs, and what belongs to it. */
export interface LiveFigures {
  readonly countedAt: Date;
  readonly tookMs: number;
  /** By queue, those without live jobs included where they are known. */
  readonly queues: ReadonlyMap<string, LiveCounts>;
  readonly kinds: readonly (CountedKind & { readonly precision: Precision })[];
  /**
   * Whether all queues with live jobs are among these, each with its oldest due job: not where their table is
   * locked, or where there are more of them than are looked at.
   */
  readonly hasAllQueues: boolean;
  /** Whether no look at the live jobs was answered in time: as a rule their table is locked. */
  readonly timedOut: boolean;
  /** `undefined` where they could not be read in time, which does not mean that there are none. */
  readonly results: readonly CountedResults[] | undefined;
  /** `undefined` where it could not be counted in time. */
  readonly retrying: CountedRetrying | undefined;
  /** `undefined` where they could not be read in time. */
  readonly crews: readonly Crew[] | undefined;
  /** `undefined` where they could not be read in time. */
  readonly pauses: readonly PausedQueue[] | undefined;
}

/** What was read beside the live jobs, when it was last read. */
export interface LastRead {
  readonly crews: readonly Crew[];
  readonly pauses: readonly PausedQueue[];
  readonly results: readonly CountedResults[];
}

export interface EarlierCounts {
  /** After a count of everything took too long: not to be tried again before this, by the process's clock. */
  exactAgainAt: number;
  readonly lastRead: LastRead;
  /** Learns from a count how long an answer takes at most. */
  readonly rest: Pick<Rest, 'mostMs'>;
}

/** How long the statements of each way of counting may take. */
const EXACT_MS = 2_000;
const CAPPED_MS = 1_000;
const HEADS_MS = 500;
const RETRYING_MS = 500;
const ESTIMATED_MS = 500;
/**
 * What the statements of an answer take at most on a quiet machine: a fixed time, and one for each page of
 * 8 kB that the tables and their indexes have. Counting a million jobs takes a tenth of it.
 */
const ANSWER_MS = 20;
const PAGE_MS = 0.1;
const PAGE_BYTES = 8_192;
/** After a count of everything that took too long: a tenth of a percent of the time. */
const EXACT_AGAIN_MS = EXACT_MS * 1_000;
const MAX_QUEUES = 1_000;
/** A planned statement takes about a millisecond, and there are three for each. */
const MAX_ESTIMATED_QUEUES = 100;

type Counted = Pick<LiveFigures, 'queues' | 'kinds' | 'hasAllQueues' | 'timedOut'>;

interface ToCount {
  readonly tables: QueueTables;
  readonly reported: ReportedRates | undefined;
}

/**
 * Counts the live jobs: all of them, or if that takes too long the first of each queue, or else it asks the
 * planner and looks which job of each queue has been due for longest. Each way has a transaction of its own,
 * since a statement that took too long has ended it.
 */
export async function countLive(
  db: Database,
  { tables, reported }: ToCount,
  known: EarlierCounts,
): Promise<LiveFigures> {
  const startMs = performance.now();
  const around = await readAround(db, tables);
  const { crews = known.lastRead.crews, pauses = known.lastRead.pauses } = around;
  const names = [...crews.flatMap(({ queues }) => queues), ...pauses.map(({ queue }) => queue)];
  const counted = await countSomehow(db, tables, known, [...new Set(names)]);
  let size: { readonly bytes: number | undefined } | undefined;
  const retrying = await withinTime(db, tables, RETRYING_MS, async ({ runner }) => {
    size = { bytes: await sizeOfTables(runner, tables, reported?.table) };
    return await countRetrying(runner, tables);
  });
  known.rest.mostMs = mostMsOf(size, known.rest.mostMs);
  return { ...around, ...counted, retrying, tookMs: performance.now() - startMs };
}

/**
 * How long an answer takes at most. To ask for the size is next to nothing: without an answer a table is
 * locked, and the database need not rest from that.
 */
function mostMsOf(size: { readonly bytes: number | undefined } | undefined, lastMs: number): number {
  if (size === undefined) return Number.isFinite(lastMs) ? lastMs : ANSWER_MS;
  return size.bytes === undefined
    ? Number.POSITIVE_INFINITY
    : ANSWER_MS + (size.bytes / PAGE_BYTES) * PAGE_MS;
}

/** All but the live jobs. A table that is locked keeps no more than itself from being read. */
async function readAround(
  db: Database,
  tables: QueueTables,
): Promise<Pick<LiveFigures, 'countedAt' | 'crews' | 'pauses' | 'results'>> {
  let countedAt: Date | undefined;
  const within = async <T>(read: (runner: Executor) => Promise<T>): Promise<T | undefined> =>
    await withinTime(db, tables, EXACT_MS, async ({ runner, startedAt }) => {
      countedAt ??= startedAt ?? new Date();
      return await read(runner);
    });
  let crews: readonly Crew[] | undefined;
  let pauses = await within(async (runner) => {
    crews = await findCrews(runner, tables);
    return await findPauses(runner, tables);
  });
  if (crews === undefined) pauses = await within((runner) => findPauses(runner, tables));
  const results = await within((runner) => countResults(runner, tables));
  return { countedAt: countedAt ?? new Date(), crews, pauses, results };
}

async function countSomehow(
  db: Database,
  tables: QueueTables,
  known: EarlierCounts,
  names: readonly string[],
): Promise<Counted> {
  if (performance.now() >= known.exactAgainAt) {
    const exact = await withinTime(db, tables, EXACT_MS, ({ runner }) => countExactly(runner, tables), {
      withoutLimit: false,
    });
    if (exact !== undefined) return exact;
    known.exactAgainAt = performance.now() + EXACT_AGAIN_MS;
  }
  const capped = await withinTime(db, tables, CAPPED_MS, ({ runner }) => countCapped(runner, tables, names));
  if (capped !== undefined) return capped;
  // How long jobs have waited is what matters most, and found where counting is not.
  const heads =
    (await withinTime(db, tables, HEADS_MS, async ({ runner }) =>
      (await isCitus(runner, tables)) ? undefined : await findHeads(runner, tables, MAX_QUEUES),
    )) ?? undefined;
  const all = [...new Set([...(heads?.heads ?? []).map(({ queue }) => queue), ...names])];
  const estimated = await withinTime(db, tables, ESTIMATED_MS, ({ runner }) => estimate(runner, tables, all));
  const queues = new Map(
    all.map((queue) => [queue, estimated?.get(queue) ?? { ...NO_JOBS, precision: 'unknown' as const }]),
  );
  if (heads === undefined) return { queues, kinds: [], hasAllQueues: false, timedOut: true };
  return withHeads(queues, heads);
}

/** What is known of some queues, with the job of each that has been due for longest. */
function withHeads(queues: ReadonlyMap<string, LiveCounts>, { heads, areAll }: Heads): Counted {
  const due = dueOf(heads);
  const found = [...queues].map(([queue, counts]) => {
    const oldestDueMs = oldestOf(due.filter((head) => head.queue === queue));
    const isIdle = areAll && oldestDueMs === undefined;
    return [queue, { ...counts, oldestDueMs, due: isIdle ? 0 : counts.due }] as const;
  });
  return { queues: new Map(found), kinds: kindsAtHeads(heads), hasAllQueues: areAll, timedOut: false };
}

/** The kinds of the jobs that have been due for longest. */
function kindsAtHeads(heads: readonly Head[]): LiveFigures['kinds'] {
  const due = dueOf(heads);
  const kinds = new Map(due.map(({ queue, kind }) => [JSON.stringify([queue, kind]), { queue, kind }]));
  return [...kinds.values()].map((one) => ({
    ...one,
    ...{ ...NO_JOBS, due: 1, killers: undefined, precision: 'at-least' as const },
    oldestDueMs: oldestOf(due.filter(({ queue, kind }) => queue === one.queue && kind === one.kind)),
  }));
}

function dueOf(heads: readonly Head[]) {
  return heads.flatMap(({ queue, kind, dueMs }) => (kind === undefined ? [] : [{ queue, kind, dueMs }]));
}

function oldestOf(due: readonly { readonly dueMs: number }[]): number | undefined {
  return due.length === 0 ? undefined : Math.max(...due.map(({ dueMs }) => dueMs));
}

async function countExactly(runner: Executor, tables: QueueTables): Promise<Counted> {
  const precision = 'exact';
  const kinds = (await countJobs(runner, tables)).map((kind) => ({ ...kind, precision }) as const);
  return { queues: byQueue(kinds, () => precision), kinds, hasAllQueues: true, timedOut: false };
}

/** The indexes say which queues there are, and which job of each has waited longest. */
async function countCapped(
  runner: Executor,
  tables: QueueTables,
  names: readonly string[],
): Promise<Counted | undefined> {
  // There it would take a statement for each shard.
  if (await isCitus(runner, tables)) return undefined;
  const { heads, areAll } = await findHeads(runner, tables, MAX_QUEUES);
  const known = [...new Set([...heads.map(({ queue }) => queue), ...names])];
  const queues = known.slice(0, MAX_QUEUES);
  const counted = await countSomeJobs(runner, tables, queues);
  const read = jobsRead(counted);
  const precisionOf = (queue: string): Precision =>
    (read.get(queue) ?? 0) > COUNTED_JOBS ? 'at-least' : 'exact';
  const kinds = counted.map((kind) => ({ ...kind, precision: precisionOf(kind.queue) }));
  const empty = queues.map((queue) => [queue, { ...NO_JOBS, precision: 'exact' as const }] as const);
  const sums = new Map<string, LiveCounts>([...empty, ...byQueue(kinds, precisionOf)]);
  for (const { queue, kind, dueMs } of heads) {
    const sum = sums.get(queue);
    if (sum === undefined || kind === undefined) continue;
    sums.set(queue, { ...sum, oldestDueMs: Math.max(sum.oldestDueMs ?? 0, dueMs) });
  }
  // A kind that no worker serves may be at the head of a priority of which no job was counted.
  const counts = (queue: string, kind: string) =>
    kinds.some((one) => one.queue === queue && one.kind === kind);
  const behind = kindsAtHeads(heads).filter(({ queue, kind }) => !counts(queue, kind));
  return {
    queues: sums,
    kinds: [...kinds, ...behind],
    hasAllQueues: areAll && known.length <= MAX_QUEUES,
    timedOut: false,
  };
}

/** How many jobs of each queue were read. */
function jobsRead(counted: readonly CountedKind[]): Map<string, number> {
  const read = new Map<string, number>();
  for (const { queue, due, running, scheduled, waiting } of counted) {
    read.set(queue, (read.get(queue) ?? 0) + due + running + scheduled + waiting);
  }
  return read;
}

async function estimate(
  runner: Executor,
  tables: QueueTables,
  names: readonly string[],
): Promise<ReadonlyMap<string, LiveCounts>> {
  const queues = new Map<string, LiveCounts>();
  for (const name of names.slice(0, MAX_ESTIMATED_QUEUES)) {
    const { live, due, running } = await estimateJobs(runner, tables, name);
    const scheduled = Math.max(0, live - due - running);
    queues.set(name, { ...NO_JOBS, due, running, scheduled, precision: 'estimated' });
  }
  return queues;
}

function byQueue(
  kinds: readonly CountedKind[],
  precisionOf: (queue: string) => Precision,
): Map<string, LiveCounts> {
  const queues = new Map<string, LiveCounts>();
  for (const kind of kinds) {
    const sum = queues.get(kind.queue) ?? NO_JOBS;
    const oldest = [sum.oldestDueMs, kind.oldestDueMs].filter((ms) => ms !== undefined);
    queues.set(kind.queue, {
      due: sum.due + kind.due,
      grouped: sum.grouped + kind.grouped,
      running: sum.running + kind.running,
      scheduled: sum.scheduled + kind.scheduled,
      waiting: sum.waiting + kind.waiting,
      oldestDueMs: oldest.length === 0 ? undefined : Math.max(...oldest),
      precision: precisionOf(kind.queue),
    });
  }
  return queues;
}
