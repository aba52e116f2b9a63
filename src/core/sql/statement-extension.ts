import type { SQL } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { QueueError } from '../../errors.ts';
import type { EndsAs } from './member-extension.ts';

/**
 * What a feature adds to the core's statements about queues whose jobs are in groups. The core puts it where
 * jobs are inserted, get another time, or end a hold; what it says there is the feature's own. A queue
 * without groups runs its statements without it.
 *
 * Each CTE begins with a comma, reads the rows of a CTE before it and inserts into tables of the feature: it
 * commits together with the statement, and must neither wait for others nor change rows that they want.
 */
export interface StatementExtension {
  /** The tables that its SQL uses, so that an error can name the missing migration. */
  readonly tables: Readonly<Record<string, PgTable>>;
  /** The entry that exports them. */
  readonly entry: string;
  /**
   * The queues whose jobs are in groups: each of their jobs has a `group_key`. `undefined`: this process does
   * not know them, and the `group_key` of a job says whether its queue is one.
   */
  readonly groupedQueues: ReadonlySet<string> | undefined;
  readonly queuesWithCosts: ReadonlySet<string>;
  /** What to say where the database refuses what it adds; `undefined`: the error has another cause. */
  refusal(error: unknown): QueueError | undefined;

  /** An insert that tells claims about the rows of a CTE with `queue`, `group_key` and a new `run_at`. */
  tellOfTimes(rows: string): SQL;
  /** What statements that end holds return of the jobs for {@link afterEnds}: more columns, after a comma. */
  readonly endedColumns: SQL;
  /** The CTEs after the CTE of an end of holds, which has `id` and the {@link endedColumns}. */
  afterEnds(ends: EndedHolds): SQL;

  /** Whether a job of this queue keeps its place when it is retried, and those behind it wait. */
  keepsPlace(queue: string): boolean;
  /** Whether those behind a job of this queue wait for good if it is discarded. */
  waitsForSuccess(queue: string): boolean;
  /** Whether the job in the row `d`, with its `queue`, `group_key` and `job_id`, has stopped its group. */
  hasStoppedGroup(queue: string | undefined): SQL;
  /** A CTE by which jobs no longer block the others of their groups. */
  unblock(jobs: UnblockedJobs): SQL;
}

export interface UnblockedJobs {
  /** The name of a CTE with their `queue`, `group_key` and `id`. */
  readonly rows: string;
  /** The queue of all of them; `undefined`: they may be of several. */
  readonly queue: string | undefined;
  /** Whether those that were discarded, those that wait for their next attempt, or both. */
  readonly which: 'discarded' | 'retried' | 'both';
}

/** Holds of one queue that a statement ends. */
export interface EndedHolds {
  readonly queue: string;
  /** The name of the CTE with the jobs. */
  readonly rows: string;
  /** How the jobs end; `undefined`: they stay in the table. */
  readonly endsAs: EndsAs | undefined;
  /** Of `HoldEndStatement`. */
  readonly blocks: SQL | undefined;
}
