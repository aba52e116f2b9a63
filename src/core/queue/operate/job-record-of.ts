import type { JobDefinition, MayLackPayload, OutputInput, PayloadInput } from '../../job/definition.ts';
import type { StoredValue } from '../../job/stored.ts';
import type { JobRecord, OutcomeRecord } from '../../sql/job-record.ts';

/** A job's record with its definition's types, as read back from JSON, and the own columns (`TOwn`). */
export type JobRecordOf<TJob extends JobDefinition, TOwn = unknown> = (MayLackPayload<TJob> extends true
  ? OutcomeRecord<TJob['kind'], StoredValue<PayloadInput<TJob>>, StoredValue<OutputInput<TJob>>>
  : JobRecord<TJob['kind'], StoredValue<PayloadInput<TJob>>, StoredValue<OutputInput<TJob>>>) &
  TOwn;
