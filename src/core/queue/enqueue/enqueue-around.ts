import { QueueError } from '../../../errors.ts';
import type { JobDefinition, PayloadInput } from '../../job/definition.ts';
import type { GivenOptions } from '../../job/enqueue-options.ts';
import { calledTwice, goAround, heard } from '../../job/go-around.ts';
import { checkObject } from '../../job/limits.ts';
import { metadataToStore, type NewJob, newJob } from '../../job/new-job.ts';
import type { QueueTables } from '../../schema/index.ts';
import type { OwnColumn } from '../../schema/own-columns.ts';
import type { Executor } from '../../sql/executor.ts';
import { inGroups } from '../../sql/grouped-jobs.ts';
import { withOwn } from '../../sql/own-values.ts';
import type { Around, JobToEnqueue } from './around.ts';
import type { EnqueueEntry } from './enqueue-arguments.ts';
import { enqueueJobs, type LimitedEnqueueResult } from './enqueue-jobs.ts';
import type { Insert, KeyRules } from './key-rules.ts';
import type { WakeUps } from './wake-ups.ts';

/** What all enqueues of one queue share. */
export interface EnqueueSettings {
  readonly tables: QueueTables;
  readonly own: readonly OwnColumn[];
  readonly wakeUps: WakeUps | undefined;
  /** For the metadata as well. */
  readonly maxPayloadBytes: number;
  readonly around: Around['enqueue'];
  /** For jobs that have a rule for their key; `undefined`: the queue takes none. */
  readonly rules: KeyRules | undefined;
  /** Whether a plain `db` is refused. */
  readonly requireTransaction: boolean;
}

export const NAME = 'around.enqueue';

/** Checks one job, and then inserts it. */
export async function enqueueOne<TJob extends JobDefinition>(
  db: Executor,
  settings: EnqueueSettings,
  job: TJob,
  payload: PayloadInput<TJob>,
  options: GivenOptions | undefined,
): Promise<LimitedEnqueueResult> {
  const made = await newJob(job, payload, options, settings.maxPayloadBytes, settings.own);
  return await insertOneAround(db, settings, withOwn(settings.own, made, options), payload);
}

/**
 * Checks all entries, before anything is sent.
 *
 * @param caller what messages about an entry begin with
 */
export async function checkEntries<TJob extends JobDefinition>(
  { own, maxPayloadBytes }: EnqueueSettings,
  job: TJob,
  entries: readonly EnqueueEntry<TJob, unknown, GivenOptions>[],
  caller: string,
): Promise<NewJob[]> {
  if (!Array.isArray(entries)) throw new TypeError(`${caller}; got ${typeof entries}`);
  const keys = [...own, { key: 'payload' }];
  const jobs: NewJob[] = [];
  const what = `${caller}: an entry`;
  for (const entry of entries as readonly EnqueueEntry<TJob, unknown, GivenOptions>[]) {
    checkObject(what, entry);
    // The definition types an omitted payload as `undefined`.
    const made = newJob(job, entry.payload as PayloadInput<TJob>, entry, maxPayloadBytes, keys, caller);
    jobs.push(withOwn(own, 'then' in made ? await made : made, entry));
  }
  return jobs;
}

/** Checks many, and then inserts those that are valid, or none. */
export async function enqueueMany<TJob extends JobDefinition>(
  db: Executor,
  settings: EnqueueSettings,
  job: TJob,
  entries: readonly EnqueueEntry<TJob, unknown, GivenOptions>[],
): Promise<LimitedEnqueueResult[]> {
  const caller = `enqueueMany('${job.kind}') takes [{ payload, … }]`;
  return await insertAround(db, settings, await checkEntries(settings, job, entries, caller), entries);
}

/**
 * Inserts jobs inside `around.enqueue`, with the metadata that it leaves them. See `enqueueJobs`.
 *
 * @param entries the jobs' payloads as the enqueue was given them, in the order of the jobs
 * @param insertAll what inserts those that have no rule
 * @throws TypeError when a job has a group or a cost that its queue does not take: see `inGroup`
 */
export async function insertAround(
  db: Executor,
  settings: EnqueueSettings,
  checked: readonly NewJob[],
  entries: readonly { readonly payload?: unknown }[],
  insertAll: Insert = (db, jobs) => enqueueJobs(db, settings.tables, jobs, settings.wakeUps),
): Promise<LimitedEnqueueResult[]> {
  const { tables, around, maxPayloadBytes } = settings;
  const jobs = inGroups(tables, checked);
  const insert = jobs.some(hasRule) ? await insertByRule(settings, jobs) : insertAll;
  if (around === undefined || jobs.length === 0) return await insert(db, jobs);
  const shown = jobs.map((job, at) => jobToEnqueue(job, entries[at]?.payload));
  let enqueued: LimitedEnqueueResult[] = [];
  await goAround({
    name: NAME,
    around,
    argument: Object.freeze(shown),
    step: async () => {
      const changed = jobs.map((job, at) => withMetadataOf(shown[at], job, maxPayloadBytes));
      enqueued = await insert(db, changed);
      // A copy: the function must not change the caller's results.
      return [...enqueued];
    },
  });
  return enqueued;
}

function hasRule({ rule }: NewJob): boolean {
  return rule !== undefined;
}

/** @throws TypeError when the queue has no rules for keys, and as they do */
async function insertByRule({ rules, ...queue }: EnqueueSettings, jobs: readonly NewJob[]): Promise<Insert> {
  if (rules !== undefined) return await rules.inserting(jobs, queue);
  throw new TypeError(`enqueue('${jobs.find(hasRule)?.kind}'): this queue has no rules for keys`);
}

/** The same for one job. @param payload as the enqueue was given it */
export async function insertOneAround(
  db: Executor,
  settings: EnqueueSettings,
  job: NewJob,
  payload: unknown,
): Promise<LimitedEnqueueResult> {
  const [enqueued] = await insertAround(db, settings, [job], [{ payload }]);
  if (enqueued === undefined) throw new QueueError('The insert returned no row');
  return enqueued;
}

/**
 * Makes a query inside `around.enqueue`, which must call `next` before it awaits anything.
 *
 * @throws QueueError when it does not call `next` at once; else what it throws at once, or making the query
 */
export function makeAround<T>(
  { around, maxPayloadBytes }: EnqueueSettings,
  job: NewJob,
  payload: unknown,
  make: (job: NewJob) => T,
): T {
  if (around === undefined) return make(job);
  const shown = jobToEnqueue(job, payload);
  let made: { readonly value: T } | { readonly error: unknown } | undefined;
  let over = false;
  const next = heard(async (): Promise<undefined> => {
    if (made !== undefined) throw calledTwice(NAME);
    if (over) throw notAtOnce();
    try {
      made = { value: make(withMetadataOf(shown, job, maxPayloadBytes)) };
    } catch (error) {
      made = { error };
      throw error;
    }
  });
  // Its rejection comes too late for the caller, who has the query by then.
  Promise.resolve(around(Object.freeze([shown]), next)).catch(() => undefined);
  over = true;
  if (made === undefined) throw notAtOnce();
  if ('error' in made) throw made.error;
  return made.value;
}

function notAtOnce(): QueueError {
  return new QueueError(
    `${NAME} did not call next() before it awaited something or ended; ` +
      'enqueueQuery returns its query at once',
  );
}

function jobToEnqueue(
  { kind, queue, priority, uniqueKey, metadata, rule }: NewJob,
  payload: unknown,
): JobToEnqueue {
  // Parsed from our own text of an object: a copy that is the job's alone.
  const own: Record<string, unknown> = JSON.parse(metadata);
  const key = rule?.type === 'waiting' || rule?.type === 'period' ? rule.key : uniqueKey;
  return Object.freeze({ kind, queue, priority, uniqueKey: key, payload, metadata: own });
}

function withMetadataOf(shown: JobToEnqueue | undefined, job: NewJob, maxBytes: number): NewJob {
  if (shown === undefined) return job;
  return { ...job, metadata: metadataToStore(job.kind, shown.metadata, maxBytes) };
}
