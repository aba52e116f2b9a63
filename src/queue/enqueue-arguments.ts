import type { JobDefinition, PayloadInput } from '../job/definition.ts';
import type { EnqueueOptions } from '../job/new-job.ts';

/**
 * Payload and options of an enqueue; the payload may be left out where the definition has none. `TOwn` is what the app's own
 * columns are given: options, and required ones where an insert would require them.
 */
export type EnqueueArguments<TJob extends JobDefinition, TOwn = unknown> =
  Record<never, never> extends TOwn
    ? undefined extends PayloadInput<TJob>
      ? [payload?: PayloadInput<TJob>, options?: EnqueueOptions & TOwn]
      : [payload: PayloadInput<TJob>, options?: EnqueueOptions & TOwn]
    : [payload: PayloadInput<TJob>, options: EnqueueOptions & TOwn];

/** One job of a bulk enqueue: its payload beside its options. */
export type EnqueueEntry<TJob extends JobDefinition, TOwn = unknown> = EnqueueOptions &
  TOwn &
  (undefined extends PayloadInput<TJob> ? { payload?: PayloadInput<TJob> } : { payload: PayloadInput<TJob> });
