/** What {@link Queue.check} can find; the guide "Troubleshooting" explains each code. */
export type FindingCode =
  | 'autovacuum-off'
  | 'check-missing'
  | 'claims-refused'
  | 'column-differs'
  | 'column-missing'
  | 'column-unexpected'
  | 'groups-on-citus'
  | 'groups-stopped'
  | 'groups-undeclared'
  | 'ids-too-large'
  | 'index-differs'
  | 'index-invalid'
  | 'index-missing'
  | 'index-on-claim-column'
  | 'kind-unserved'
  | 'not-postgres'
  | 'not-tuned'
  | 'permission-denied'
  | 'policy-missing'
  | 'pooled-by-transaction'
  | 'postgres-too-old'
  | 'queues-unchecked'
  | 'read-only'
  | 'single-connection'
  | 'tables-elsewhere'
  | 'tables-missing'
  | 'timed-out'
  | 'worker-silent'
  | 'workflows-on-citus';

/** A problem or advice that {@link Queue.check} has found. */
export interface Finding {
  /** Stable, for programs. */
  readonly code: FindingCode;
  /**
   * `error`: something fails, or a guarantee does not hold. `warning`: everything works, but slowly, or not
   * for long. `hint`: advice that most queues do not need.
   */
  readonly severity: 'error' | 'warning' | 'hint';
  /** The queue that it is about, where it is about one. */
  readonly queue?: string;
  /** The kind of jobs in that queue, where it is about one. */
  readonly kind?: string;
  /** The name of the worker that it is about, where it is about one. */
  readonly worker?: string;
  /** What was found, with the names of tables, columns and indexes. */
  readonly message: string;
  /** What to do: a command, a line of code, or SQL. */
  readonly fix: string;
}

export const MIGRATE = 'Run `npx drizzle-kit generate` and `npx drizzle-kit migrate`';
