/** What {@link Queue.check} can find; each has an entry in the guide "Troubleshooting". */
export type FindingCode =
  | 'autovacuum-off'
  | 'check-missing'
  | 'column-differs'
  | 'column-missing'
  | 'column-unexpected'
  | 'index-differs'
  | 'index-invalid'
  | 'index-missing'
  | 'index-on-claim-column'
  | 'not-tuned'
  | 'permission-denied'
  | 'postgres-too-old'
  | 'read-only'
  | 'tables-elsewhere'
  | 'tables-missing'
  | 'worker-silent';

/** Something about the set-up of a queue that {@link Queue.check} has found. */
export interface Finding {
  /** Stable, for programs. */
  readonly code: FindingCode;
  /**
   * `error`: something fails, or a guarantee does not hold. `warning`: everything works, but slowly, or not for long. `hint`:
   * advice, which most queues can do without.
   */
  readonly severity: 'error' | 'warning' | 'hint';
  /** What is so, with the names of tables, columns and indexes. */
  readonly message: string;
  /** What to do about it: a command, a line of code, or SQL. */
  readonly fix: string;
}

/** What brings a database up to date. */
export const MIGRATE = 'Run `npx drizzle-kit generate` and `npx drizzle-kit migrate`';
