import type { JobDefinition, PayloadInput } from '../../job/definition.ts';
import type { GivenOptions } from '../../job/enqueue-options.ts';
import { newJob } from '../../job/new-job.ts';
import type { Executor } from '../../sql/executor.ts';
import { withOwn } from '../../sql/own-values.ts';
import { type EnqueueSettings, insertOneAround } from './enqueue-around.ts';
import type { LimitedEnqueueResult } from './enqueue-jobs.ts';

/** Checks a job, and then inserts it. */
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
