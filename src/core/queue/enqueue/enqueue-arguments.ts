import type { JobDefinition, PayloadInput } from '../../job/definition.ts';
import type { EnqueueOptions } from '../../job/enqueue-options.ts';

/**
 * Payload and options of an enqueue; the payload may be omitted where the definition has none. `TOwn` holds
 * the values of the app's own columns, required where an insert requires them.
 */
export type EnqueueArguments<TJob extends JobDefinition, TOwn = unknown, TOptions = EnqueueOptions> =
  Record<never, never> extends TOwn
    ? undefined extends PayloadInput<TJob>
      ? [payload?: PayloadInput<TJob>, options?: TOptions & TOwn]
      : [payload: PayloadInput<TJob>, options?: TOptions & TOwn]
    : [payload: PayloadInput<TJob>, options: TOptions & TOwn];

/** One job of a bulk enqueue: its payload beside its options. */
export type EnqueueEntry<TJob extends JobDefinition, TOwn = unknown, TOptions = EnqueueOptions> = TOptions &
  TOwn &
  (undefined extends PayloadInput<TJob> ? { payload?: PayloadInput<TJob> } : { payload: PayloadInput<TJob> });
