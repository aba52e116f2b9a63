import { type Executor, QueueError } from '../../index.ts';
import { type EnqueueSettings, findStandingJobs, insertAround, type NewJob } from '../../internal.ts';
import type { LeftJob } from './import-report.ts';
import type { ImportedJob } from './new-imported-job.ts';
import { carryOverJobs } from './queries/carry-over-jobs.ts';

/** What became of jobs that were to be inserted. */
export interface Inserted {
  readonly inserted: readonly (ImportedJob & { readonly newId: number })[];
  /** Each with the id of the live job that has its key. */
  readonly duplicates: readonly (ImportedJob & { readonly standingId: number })[];
}

/** Inserts jobs as an enqueue does, with what they bring along. In a transaction. */
export async function insertImportedJobs(
  tx: Executor,
  settings: EnqueueSettings,
  jobs: readonly ImportedJob[],
): Promise<Inserted> {
  const inserted: (ImportedJob & { readonly newId: number })[] = [];
  const duplicates: (ImportedJob & { readonly standingId: number })[] = [];
  for (const part of byRule(jobs)) {
    const answers = await insertAround(
      tx,
      settings,
      part.map(({ job }) => job),
      part,
    );
    for (const [index, { id, outcome }] of answers.entries()) {
      const job = part[index];
      if (job === undefined || id === undefined)
        throw new QueueError('The insert did not answer for each job');
      if (outcome === 'enqueued') inserted.push({ ...job, newId: id });
      else duplicates.push({ ...job, standingId: id });
    }
  }
  for (const [queue, part] of byQueue(inserted)) {
    const histories = part.map(({ newId, read, createdAt }) => ({
      id: newId,
      attempt: read.attempts,
      createdAtMs: timeOrNothing(createdAt),
    }));
    const found = await carryOverJobs(tx, settings.tables, queue, histories);
    if (found !== part.length) throw new QueueError('Jobs that were just inserted are not there');
  }
  return { inserted, duplicates };
}

/** Of a dry run: the ids of live jobs in the way of these, in their order. */
export async function findDuplicates(
  db: Executor,
  { tables }: EnqueueSettings,
  jobs: readonly ImportedJob[],
): Promise<Map<ImportedJob, number>> {
  const found = new Map<ImportedJob, number>();
  for (const part of byRule(jobs)) {
    const keyed = part.filter(({ job }) => keyOf(job) !== undefined);
    if (keyed.length === 0) continue;
    const ids = await findStandingJobs(
      db,
      tables,
      keyed.map(({ job }) => job),
    );
    for (const [index, job] of keyed.entries()) {
      const id = ids[index];
      if (id !== undefined) found.set(job, id);
    }
  }
  return found;
}

export function leftAsDuplicate({ read }: ImportedJob, standingId: number | undefined): LeftJob {
  const whose = standingId === undefined ? 'Another of these jobs' : `The job ${standingId}`;
  return { id: read.id, name: read.name, why: 'duplicate', message: `${whose} has its unique key` };
}

/** What makes a job one of a kind; `undefined`: it has no key. */
export function keyOf({ queue, kind, uniqueKey, rule }: NewJob): string | undefined {
  const key = rule?.key ?? uniqueKey;
  return key === null ? undefined : JSON.stringify([queue, kind, rule?.type, key]);
}

/** One insert follows one rule for the keys of its jobs. */
function byRule(jobs: readonly ImportedJob[]): (readonly ImportedJob[])[] {
  const ruled = jobs.filter(({ job }) => job.rule !== undefined);
  const plain = jobs.filter(({ job }) => job.rule === undefined);
  return [plain, ruled].filter(({ length }) => length > 0);
}

function byQueue<T extends ImportedJob>(jobs: readonly T[]): Map<string, T[]> {
  const queues = new Map<string, T[]>();
  for (const job of jobs) {
    const known = queues.get(job.job.queue);
    if (known === undefined) queues.set(job.job.queue, [job]);
    else known.push(job);
  }
  return queues;
}

function timeOrNothing(date: Date | undefined): number | undefined {
  const time = date?.getTime();
  return time === undefined || Number.isNaN(time) ? undefined : time;
}
