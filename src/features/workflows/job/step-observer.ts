import type { StepKind } from '../schema/queue-steps.ts';

/** A step that begins, as a {@link StepObserver} gets it. */
export interface ObservedStep {
  readonly job: {
    readonly id: number;
    readonly kind: string;
    readonly queue: string;
    readonly attempt: number;
  };
  readonly name: string;
  readonly kind: StepKind;
  /** Which try of the step it is, from 1; more than 1 only where its `attempts` are bounded. */
  readonly attempt: number;
  /** Aborted when the attempt is over although its handler is not. */
  readonly signal: AbortSignal;
}

/** What a step came to in this run of the handler. */
export type StepEnd = 'done' | 'failed' | 'timed-out' | 'waiting';

/** The observation of one step in one run of the handler. */
export interface StepObservation {
  /** Kept with a step that waits, for `resume`: at most 200 characters, or it is left out. */
  readonly trace?: string | undefined;
  /** Runs the step, in an async context of the observer's. Must return what `task` returns. */
  run<T>(task: () => Promise<T>): Promise<T>;
  /** Called once, with the error of a failed step. Not for an open step that is never recorded. */
  end(end: StepEnd, error?: unknown): void;
}

/**
 * Sees the steps of handlers, for tracing: see `workflowsIn`. Steps that are only replayed are not reported.
 * What its functions throw fails the attempt.
 */
export interface StepObserver {
  begin(step: ObservedStep): StepObservation;
  /**
   * A handler is called again after a wait, whose `trace` this is. Called once in a run, at its first step.
   */
  resume(trace: string): void;
}
