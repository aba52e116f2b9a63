import { type Database, type Executor, QueueError } from '../../index.ts';
import { describeThrown, type EnqueueSettings, faultPoint, sqlStateOf, transact } from '../../internal.ts';
import type { ReadJob } from './foreign-job.ts';
import { type ImportReport, type LeftJob, Tally } from './import-report.ts';
import { findDuplicates, insertImportedJobs, keyOf, leftAsDuplicate } from './insert-imported-jobs.ts';
import type { ImportRule } from './mapping.ts';
import { type ImportedJob, newImportedJob } from './new-imported-job.ts';
import type { Place, TableSource } from './source.ts';

/** What an import is given. */
export interface ImportCall {
  readonly rules: ReadonlyMap<string, ImportRule>;
  readonly settings: EnqueueSettings;
  readonly dryRun: boolean;
  readonly batchSize: number;
  readonly onProgress: ((sums: { imported: number; left: number }) => void) | undefined;
  readonly signal: AbortSignal | undefined;
}

/** What became of the jobs of one batch. */
interface Batch {
  readonly imported: readonly ImportedJob[];
  readonly left: readonly LeftJob[];
}

/**
 * How many places are listed at once. Many more than a batch: without statistics, as after a restore,
 * Postgres sorts all jobs for a page of some. With a batch a page, 500,000 jobs of pg-boss took 20 s a page.
 */
const LISTED = 50_000;

/**
 * Moves the jobs of a system that has its tables in this database, by batches: each is one transaction, or
 * all are part of the one that `db` is.
 */
export async function importFromTable(
  db: Database,
  source: TableSource,
  call: ImportCall,
): Promise<ImportReport> {
  const { rules, dryRun, onProgress } = call;
  const tally = new Tally(new Map([...rules].map(([name, { job }]) => [name, job.kind])));
  const counts = await source.count(db);
  for (const { name, waiting } of counts)
    if (waiting > 0 && !rules.has(name)) tally.addUnnamed(name, waiting);
  const active = counts.reduce((sum, { active }) => sum + active, 0);
  const isOne = typeof Reflect.get(db, 'rollback') === 'function';
  const seen = new Set<string>();
  for await (const places of batchesOf(db, source, call)) {
    const batch = await (dryRun
      ? lookAtBatch(db, source, places, call, seen)
      : isOne
        ? moveBatch(db, source, places, call)
        : transact(db, (tx) => moveBatch(tx, source, places, call)));
    for (const job of batch.imported) tally.addImported(job);
    for (const job of batch.left) tally.addLeft(job);
    onProgress?.({ imported: tally.imported, left: tally.left });
  }
  return tally.report(dryRun, active);
}

async function* batchesOf(
  db: Executor,
  source: TableSource,
  { rules, batchSize, signal }: ImportCall,
): AsyncIterable<readonly Place[]> {
  const names = [...rules.keys()];
  for (let after: Place | undefined; ; ) {
    signal?.throwIfAborted();
    const listed = await source.list(db, { names, after, limit: LISTED });
    for (let start = 0; start < listed.length; start += batchSize) {
      signal?.throwIfAborted();
      yield listed.slice(start, start + batchSize);
    }
    if (listed.length < LISTED) return;
    after = listed.at(-1);
  }
}

async function moveBatch(
  tx: Executor,
  source: TableSource,
  places: readonly Place[],
  call: ImportCall,
): Promise<Batch> {
  const jobs = await lockedJobs(tx, source, places);
  const locked = jobs.length < places.length ? await lockedElsewhere(tx, source, places, jobs) : [];
  await faultPoint('import: held');
  const { made, left } = await madeOf(jobs, call);
  const { inserted, duplicates } = await insertImportedJobs(tx, call.settings, made);
  await faultPoint('import: written');
  const taken = inserted.map(({ read }) => read);
  if (taken.length > 0 && (await source.remove(tx, taken)) !== taken.length) {
    // The transaction ends here, and with it what was inserted.
    throw new QueueError(`importJobs: ${source.title} no longer has all the jobs that were locked`);
  }
  await faultPoint('import: dropped');
  const others = duplicates.map((job) => leftAsDuplicate(job, job.standingId));
  return { imported: inserted, left: [...left, ...locked, ...others] };
}

/** Of the jobs of these places, those that still wait and are not among the ones that were locked here. */
async function lockedElsewhere(
  tx: Executor,
  source: TableSource,
  places: readonly Place[],
  locked: readonly ReadJob[],
): Promise<readonly LeftJob[]> {
  const ids = new Set(locked.map(({ id }) => id));
  const waiting = await source.read(tx, places, false);
  return waiting.flatMap(({ id, name }) =>
    ids.has(id) ? [] : { id, name, why: 'locked', message: 'Another transaction has locked its row' },
  );
}

const NOT_SUPPORTED = '0A000';

/** @throws QueueError where such rows cannot be locked: of a `distinct`, or on several shards of Citus */
async function lockedJobs(
  tx: Executor,
  source: TableSource,
  places: readonly Place[],
): Promise<readonly ReadJob[]> {
  try {
    return await source.read(tx, places, true);
  } catch (error) {
    if (sqlStateOf(error) !== NOT_SUPPORTED) throw error;
    throw new QueueError(
      `importJobs: the rows of ${source.title} cannot be locked (${describeThrown(error).message}). ` +
        'Import from a plain table. If the table is distributed by Citus, copy its rows into one that is not',
      { cause: error },
    );
  }
}

/** @param seen the keys of the jobs before, which the batch adds its own to */
async function lookAtBatch(
  db: Executor,
  source: TableSource,
  places: readonly Place[],
  call: ImportCall,
  seen: Set<string>,
): Promise<Batch> {
  const jobs = await source.read(db, places, false);
  const { made, left } = await madeOf(jobs, call);
  const { fresh, taken } = await withoutDuplicates(db, call.settings, made, seen);
  return { imported: fresh, left: [...left, ...taken] };
}

/** The jobs whose keys are free, as far as a look can tell. @param seen as above */
export async function withoutDuplicates(
  db: Executor,
  settings: EnqueueSettings,
  made: readonly ImportedJob[],
  seen: Set<string>,
): Promise<{ readonly fresh: readonly ImportedJob[]; readonly taken: readonly LeftJob[] }> {
  const standing = await findDuplicates(db, settings, made);
  const taken: LeftJob[] = [];
  const fresh = made.filter((job) => {
    const key = keyOf(job.job);
    const isTaken = standing.has(job) || (key !== undefined && seen.has(key));
    if (isTaken) taken.push(leftAsDuplicate(job, standing.get(job)));
    else if (key !== undefined) seen.add(key);
    return !isTaken;
  });
  return { fresh, taken };
}

/** The jobs that their rules and definitions take, and the others. */
export async function madeOf(
  jobs: readonly ReadJob[],
  { rules, settings }: ImportCall,
): Promise<{ readonly made: readonly ImportedJob[]; readonly left: readonly LeftJob[] }> {
  const made: ImportedJob[] = [];
  const left: LeftJob[] = [];
  for (const read of jobs) {
    const rule = rules.get(read.name);
    if (rule === undefined) continue;
    const answer = await newImportedJob(read, rule, settings);
    if ('why' in answer) left.push(answer);
    else made.push(answer);
  }
  return { made, left };
}
