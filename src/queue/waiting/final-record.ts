import type { JobDefinition, OutputInput, PayloadInput, PayloadNotKept } from '../../job/definition.ts';
import type { StoredValue } from '../../job/stored.ts';
import type { FinalState } from '../../schema/queue-results.ts';
import type { JobRecord } from '../../sql/job-record.ts';

/** The record of a job that has ended. */
export type FinalRecord<
  TKind extends string = string,
  TPayload = unknown,
  TOutput = unknown,
  TKept = TPayload,
> = Extract<JobRecord<TKind, TPayload, TOutput, TKept>, { readonly state: FinalState }>;

/** The same with its definition's types, as read back from JSON, and the own columns (`TOwn`). */
export type FinalRecordOf<TJob extends JobDefinition, TOwn = unknown> = FinalRecord<
  TJob['kind'],
  StoredValue<PayloadInput<TJob>>,
  StoredValue<OutputInput<TJob>>,
  StoredValue<PayloadInput<TJob>> | PayloadNotKept<TJob>
> &
  TOwn;
