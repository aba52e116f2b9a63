import type { JobDefinition, PayloadInput } from '../../job/definition.ts';
import type { GivenOptions } from '../../job/enqueue-options.ts';
import { checkObject } from '../../job/limits.ts';
import { type NewJob, newJob } from '../../job/new-job.ts';
import type { Executor } from '../../sql/executor.ts';
import { withOwn } from '../../sql/own-values.ts';
import type { EnqueueEntry } from './enqueue-arguments.ts';
import { type EnqueueSettings, insertAround, insertOneAround } from './enqueue-around.ts';
import type { LimitedEnqueueResult } from './enqueue-jobs.ts';

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
