import type { JobDefinition, OutputInput, PayloadInput, PayloadNotKept } from '../job/definition.ts';
import type { StoredValue } from '../job/stored.ts';
import type { JobRecord } from '../sql/job-record.ts';

/** A job's record with its definition's types, as read back from JSON, and the own columns (`TOwn`). */
export type JobRecordOf<TJob extends JobDefinition, TOwn = unknown> = JobRecord<
  TJob['kind'],
  StoredValue<PayloadInput<TJob>>,
  StoredValue<OutputInput<TJob>>,
  StoredValue<PayloadInput<TJob>> | PayloadNotKept<TJob>
> &
  TOwn;
