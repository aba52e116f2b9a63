import type { JobDefinition, PayloadInput } from './job/definition.ts';
import type { EnqueueOptions } from './job/new-job.ts';

/** Payload and options of an enqueue; the payload may be left out where the definition has none. */
export type EnqueueArguments<TJob extends JobDefinition> =
  undefined extends PayloadInput<TJob>
    ? [payload?: PayloadInput<TJob>, options?: EnqueueOptions]
    : [payload: PayloadInput<TJob>, options?: EnqueueOptions];

/** One job of a bulk enqueue: its payload beside its options. */
export type EnqueueEntry<TJob extends JobDefinition> = EnqueueOptions &
  (undefined extends PayloadInput<TJob> ? { payload?: PayloadInput<TJob> } : { payload: PayloadInput<TJob> });
