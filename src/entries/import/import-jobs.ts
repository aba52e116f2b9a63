import type { OwnColumns } from '../../core/schema/index.ts';
import { createQueue, type Database, type JobDefinition, type Queue } from '../../index.ts';
import {
  type Batching,
  checkBatching,
  checkBoolean,
  checkExecutor,
  checkObject,
  checkOptions,
  DEFAULT_BATCH_SIZE,
  namesOf,
  settingsOf,
} from '../../internal.ts';
import { importFromRedis } from './import-from-redis.ts';
import { importFromTable } from './import-from-table.ts';
import type { ImportReport } from './import-report.ts';
import { checkMapping, type ImportMapping } from './mapping.ts';
import type { ImportSource } from './source.ts';

/** The sums of an import so far. */
export interface ImportProgress {
  readonly imported: number;
  readonly left: number;
}

/** The options of {@link importJobs}. */
export interface ImportOptions<TOwn extends OwnColumns = OwnColumns> extends Batching<ImportProgress> {
  /** The app's own, from `createQueue`. @default createQueue() */
  queue?: Queue<TOwn> | undefined;
  /** Changes nothing, locks nothing, and says what would become of each job. @default false */
  dryRun?: boolean | undefined;
  /** The jobs of one batch, 1 to 10,000. @default 1,000 */
  batchSize?: number | undefined;
}

const OPTIONS = namesOf<ImportOptions>({
  queue: true,
  dryRun: true,
  batchSize: true,
  onProgress: true,
  signal: true,
});

/**
 * Moves the jobs that wait in another system: those that are due, those that are not yet, and those that have
 * failed and are to run again. Each keeps its payload, as the mapping changes it, its priority among the
 * others, its time, its key where that has a counterpart, the attempts behind and before it, and the time of
 * its creation. A job that the definition refuses, or whose key a live job has, stays where it is. A
 * `deadlineMs` of the definition is counted from the import.
 *
 * ```ts
 * await importJobs(db, from.pgBoss(), { 'send-email': { job: sendEmail, payload: toEmail } });
 * ```
 *
 * `db` is a database, and each batch is a transaction of its own, or a transaction (not for BullMQ on Redis),
 * and all batches are part of that. It can be called again, after a crash too: what is imported is gone from
 * there.
 *
 * Under concurrency: workers of both sides go on. A job is taken by one of them or by the import, never by
 * two, and a job that a worker has is left to it. What is enqueued there meanwhile may be left for the next
 * call.
 *
 * @throws RangeError | TypeError before anything is sent
 * @throws the reason of an aborted signal, between two batches; errors of the database and of Redis: what the
 * batches before have moved stays moved, unless `db` is a transaction
 */
export async function importJobs<
  const TJobs extends Readonly<Record<string, JobDefinition>>,
  TOwn extends OwnColumns = OwnColumns,
>(
  db: Database,
  source: ImportSource,
  mapping: ImportMapping<TJobs, TOwn>,
  options: ImportOptions<TOwn> = {},
): Promise<ImportReport> {
  checkExecutor('importJobs', db);
  checkObject('importJobs: the source', source);
  if (source.type !== 'table' && source.type !== 'redis') {
    throw new TypeError('importJobs: the source must be made by from, such as from.pgBoss()');
  }
  // A rule takes the payloads of its own definition, and what it makes is checked.
  const rules = checkMapping(mapping as unknown as ImportMapping);
  checkOptions('importJobs: options', options, OPTIONS);
  checkBatching('importJobs', options);
  const { dryRun = false, batchSize = DEFAULT_BATCH_SIZE, onProgress, signal } = options;
  checkBoolean('importJobs: dryRun', dryRun);
  const settings = settingsOf('importJobs', options.queue ?? createQueue());
  const call = { rules, settings, dryRun, batchSize, onProgress, signal };
  return await (source.type === 'table'
    ? importFromTable(db, source, call)
    : importFromRedis(db, source, call));
}
