import type { JobDefinition, OutputInput, PayloadInput } from '../job/definition.ts';
import type { StoredValue } from '../job/stored.ts';
import type { JobRecord } from '../sql/job-record.ts';

/**
 * A job's record with its definition's payload and output types, as they come back from JSON, and the values
 * of the app's own columns (`TOwn`).
 */
export type JobRecordOf<TJob extends JobDefinition, TOwn = unknown> = JobRecord<
  TJob['kind'],
  StoredValue<PayloadInput<TJob>>,
  StoredValue<OutputInput<TJob>>
> &
  TOwn;
