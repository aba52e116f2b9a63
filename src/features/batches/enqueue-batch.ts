import type { JobDefinition } from '../../core/job/definition.ts';
import type { PlainEnqueueOptions } from '../../core/job/enqueue-options.ts';
import { shown } from '../../core/job/shown.ts';
import type { EnqueueEntry } from '../../core/queue/enqueue/enqueue-arguments.ts';
import { checkEntries, insertAround } from '../../core/queue/enqueue/enqueue-around.ts';
import type { QueueOfWorkflows } from '../../core/queue/queue-workflows.ts';
import { checkOpen, type Executor } from '../../core/sql/executor.ts';
import { blockedJob, checkUntimed } from './blocked-job.ts';
import { checkMembers, inStatements, insertMembers } from './insert-members.ts';
import { addWaits } from './queries/add-waits.ts';
import { openBatches } from './queries/open-batches.ts';
import { sealBatch } from './queries/seal-batch.ts';
import type { TablesOfBatches } from './sql/batch-tables.ts';
import { CHUNK } from './sql/chunk.ts';

/** What `enqueueBatch` returns. */
export interface EnqueuedBatch {
  /** Of the batch, for `queue.workflows.flow`. */
  readonly id: number;
  /** How many jobs it has. */
  readonly enqueued: number;
  /** How many were left out because a live job has their unique key. */
  readonly duplicates: number;
  /** Of the job that runs when all have ended. */
  readonly lastId: number;
}

/** The jobs of a batch: an array, or something that is read as they are inserted. */
export type BatchEntries<TJob extends JobDefinition, TOwn = unknown> =
  | Iterable<EnqueueEntry<TJob, TOwn, PlainEnqueueOptions>>
  | AsyncIterable<EnqueueEntry<TJob, TOwn, PlainEnqueueOptions>>;

/** The job that runs once all others of a batch have ended: its definition, payload and settings. */
export type LastJob<TLast extends JobDefinition, TOwn = unknown> = {
  readonly last: TLast;
} & EnqueueEntry<TLast, TOwn, Omit<PlainEnqueueOptions, 'uniqueKey' | 'delayMs' | 'runAt'>>;

/**
 * Inserts jobs as one batch, a thousand at a time as they come, and the job that waits for all of them, in
 * one transaction.
 */
export async function enqueueBatch<TJob extends JobDefinition>(
  tx: Executor,
  tables: TablesOfBatches,
  queue: QueueOfWorkflows,
  job: TJob,
  entries: BatchEntries<TJob>,
  ending: { readonly job: JobDefinition; readonly entry: EnqueueEntry<JobDefinition> },
): Promise<EnqueuedBatch> {
  const caller = `enqueueBatch('${job.kind}') takes [{ payload, … }]`;
  const { [Symbol.iterator]: each, [Symbol.asyncIterator]: eachInTime } = Object(entries);
  if ((each ?? eachInTime) === undefined) throw new TypeError(`${caller}, got ${shown(entries)}`);
  // Before anything is sent: a wrong one at the end of a million would roll them back.
  checkUntimed('enqueueBatch: last: ', ending.entry);
  const [last] = await checkEntries(queue.settings(), ending.job, [ending.entry], 'enqueueBatch: last');
  if (last === undefined) throw new TypeError('enqueueBatch: there is no job to run at the end');
  checkOpen('enqueueBatch', tx); // As in enqueueJobs.
  // One member for now: a batch without members is born ended. `sealBatch` writes the real number.
  const [id = Number.NaN] = await openBatches(tx, tables, [1], true);
  let [enqueued, duplicates] = [0, 0];
  for await (const some of chunks(entries)) {
    const checked = await checkEntries(queue.settings(), job, some, caller);
    checkMembers('enqueueBatch', checked);
    const members = checked.map((one, at) => ({ job: { ...one, batch: id }, entry: some[at] ?? {} }));
    for (const part of inStatements(members)) {
      const jobs = part.map(({ job }) => job);
      const entriesOfPart = part.map(({ entry }) => entry);
      for (const { outcome } of await insertAround(tx, queue.settings(), jobs, entriesOfPart)) {
        if (outcome === 'enqueued') enqueued++;
        else duplicates++;
      }
    }
  }
  await sealBatch(tx, tables, id, enqueued);
  const [lastId = Number.NaN] = await insertMembers(tx, queue, 'enqueueBatch: last', [
    { job: blockedJob(last, enqueued === 0 ? 0 : 1, ending.job), entry: ending.entry },
  ]);
  await addWaits(tx, tables, [{ batchId: id, jobId: lastId, queue: last.queue, policy: 'run' }]);
  return { id, enqueued, duplicates, lastId };
}

async function* chunks<T>(entries: Iterable<T> | AsyncIterable<T>): AsyncGenerator<T[]> {
  let some: T[] = [];
  for await (const entry of entries) {
    some.push(entry);
    if (some.length < CHUNK) continue;
    yield some;
    some = [];
  }
  if (some.length > 0) yield some;
}
