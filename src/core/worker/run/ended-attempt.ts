export type AttemptEnd =
  | 'completed'
  | 'retried'
  | 'discarded'
  | 'cancelled'
  | 'snoozed'
  | 'interrupted'
  | 'lost';

/** What became of an attempt, for what counts them. */
export interface EndedAttempt {
  readonly queue: string;
  readonly kind: string;
  readonly as: AttemptEnd;
  /** From due to begun; `undefined` when it did not begin. */
  readonly waitMs: number | undefined;
  /** From begun to ended; `undefined` when it did not begin. */
  readonly runMs: number | undefined;
}
