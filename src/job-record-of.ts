import type { JobDefinition, OutputInput, PayloadInput } from './job/definition.ts';
import type { StoredValue } from './job/stored.ts';
import type { JobRecord } from './queries/job-record.ts';

/** A job's record, with the payload and output types of its definition, as they come back from JSON. */
export type JobRecordOf<TJob extends JobDefinition> = JobRecord<
  TJob['kind'],
  StoredValue<PayloadInput<TJob>>,
  StoredValue<OutputInput<TJob>>
>;
