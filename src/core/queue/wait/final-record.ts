import type { JobDefinition, MayLackPayload, OutputInput, PayloadInput } from '../../job/definition.ts';
import type { StoredValue } from '../../job/stored.ts';
import type { FinalState } from '../../schema/queue-results.ts';
import type { JobRecord, OutcomeRecord } from '../../sql/job-record.ts';

/** The record of a job that has ended. */
export type FinalRecord<TKind extends string = string, TPayload = unknown, TOutput = unknown> = Extract<
  JobRecord<TKind, TPayload, TOutput>,
  { readonly state: FinalState }
>;

/** The same of a kind whose completed jobs may lack the payload. */
export type FinalOutcomeRecord<TKind extends string, TPayload, TOutput> = Extract<
  OutcomeRecord<TKind, TPayload, TOutput>,
  { readonly state: FinalState }
>;

/** The same with its definition's types, as read back from JSON, and the own columns (`TOwn`). */
export type FinalRecordOf<TJob extends JobDefinition, TOwn = unknown> = (MayLackPayload<TJob> extends true
  ? FinalOutcomeRecord<TJob['kind'], StoredValue<PayloadInput<TJob>>, StoredValue<OutputInput<TJob>>>
  : FinalRecord<TJob['kind'], StoredValue<PayloadInput<TJob>>, StoredValue<OutputInput<TJob>>>) &
  TOwn;
