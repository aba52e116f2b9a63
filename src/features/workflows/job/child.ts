import type { JobDefinition, OutputInput } from '../../../core/job/definition.ts';
import type { PlainEnqueueOptions } from '../../../core/job/enqueue-options.ts';
import type { StoredValue } from '../../../core/job/stored.ts';
import type { EnqueueArguments, EnqueueEntry } from '../../../core/queue/enqueue/enqueue-arguments.ts';

/** A job that a step has enqueued, to wait for. */
export interface Child<TJob extends JobDefinition = JobDefinition> {
  readonly id: number;
  readonly job: TJob;
  /** The step that has enqueued it. */
  readonly step: string;
  /** The batch of which it is the only member. */
  readonly batchId: number;
}

/** The jobs that a step has enqueued, to wait for together. */
export interface Children<TJob extends JobDefinition = JobDefinition> {
  /** In the order in which they were given. */
  readonly ids: readonly number[];
  readonly job: TJob;
  /** The step that has enqueued them. */
  readonly step: string;
  /** The batch of which they are the members. */
  readonly batchId: number;
}

/** What a job returns, as it is stored. */
export type OutputOf<TJob extends JobDefinition> = StoredValue<OutputInput<TJob>>;

/** How a child has ended: with an output, or why it has none. */
export type ChildEnd<TJob extends JobDefinition = JobDefinition> =
  | { readonly id: number; readonly state: 'completed'; readonly output: OutputOf<TJob> }
  | {
      readonly id: number;
      /** `gone`: its result was deleted, or it is no longer kept. */
      readonly state: 'discarded' | 'cancelled' | 'gone';
      readonly reason: string;
    };

/** Options of a child. */
export interface ChildOptions {
  /**
   * Whether it goes on when the job that enqueues it is cancelled. When that one is discarded it goes on in
   * any case, since a redrive wants its output. @default false
   */
  readonly detached?: boolean | undefined;
}

/** The settings of an enqueue that a child may have. A key is not among them: its step makes it once. */
export type ChildSettings = Omit<PlainEnqueueOptions, 'uniqueKey' | 'unique'>;

/**
 * Payload and options of a child; the payload may be omitted where the definition has none. `TOwn` holds the
 * values of the app's own columns.
 */
export type ChildArguments<TJob extends JobDefinition, TOwn = unknown> = EnqueueArguments<
  TJob,
  TOwn,
  ChildSettings & ChildOptions
>;

/** One of many children: its payload beside its settings, and the values of the app's own columns. */
export type ChildEntry<TJob extends JobDefinition, TOwn = unknown> = EnqueueEntry<TJob, TOwn, ChildSettings>;

/** The ends of several children, by their places. */
export type EndsOf<TChildren extends readonly Child[]> = {
  -readonly [K in keyof TChildren]: TChildren[K] extends Child<infer TJob> ? ChildEnd<TJob> : never;
};

/** The outputs of several children, by their places. */
export type OutputsOf<TChildren extends readonly Child[]> = {
  -readonly [K in keyof TChildren]: TChildren[K] extends Child<infer TJob> ? OutputOf<TJob> : never;
};

/** How many jobs a job has waited for, and how they ended. */
export interface ParentCounts {
  readonly total: number;
  readonly completed: number;
  /** Discarded or cancelled. */
  readonly failed: number;
}
