import type { SQL } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { QueueError } from '../../errors.ts';

/**
 * What a feature adds to the core's statements that end jobs or put them back, where jobs are members of
 * batches that others wait for. A queue without it runs its statements without it.
 *
 * Each CTE begins with a comma, reads the rows of a CTE before it and inserts into tables of the feature: it
 * commits together with the statement, and must neither wait for others nor change rows that they want.
 */
export interface MemberExtension {
  /** The tables that its SQL uses, so that an error can name the missing migration. */
  readonly tables: Readonly<Record<string, PgTable>>;
  /** The entry that exports them. */
  readonly entry: string;
  /** What to say where the database refuses what it adds; `undefined`: the error has another cause. */
  refusal(error: unknown): QueueError | undefined;
  /** The CTEs after one with the `id` of jobs that have left the table, and their batch as `member_of`. */
  afterEnds(rows: string, endsAs: EndsAs): SQL;
  /** The CTEs after one with the same of discarded jobs that were put back. */
  afterRedrive(rows: string): SQL;
}

export interface EndsAs {
  /** Whether the job in the row `e` was discarded or cancelled. */
  readonly failed: SQL;
  /** Whether it was cancelled; `undefined`: none is. */
  readonly cancelled: SQL | undefined;
}
