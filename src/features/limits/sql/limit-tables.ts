import type { SQL } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { type Executor, queryRows, type RawRow, type Runner } from '../../../core/sql/executor.ts';
import { CONTROL_ENTRY } from '../../control/control-entry.ts';
import type { ControlTables } from '../../control/index.ts';

/** The tables of limits. */
export type LimitTables = Pick<
  ControlTables,
  'queueLimits' | 'queueUsage' | 'queueGroups' | 'queueHolds' | 'queueNotes'
>;

/** The tables that statements about groups use. */
export type GroupTables = QueueTables & LimitTables;

/** The tables that statements about the limits of queues and kinds use. */
export type LeaseTables = QueueTables & Pick<LimitTables, 'queueLimits' | 'queueUsage'>;

/** A limit of which workers take slots or starts: of a queue, or of a kind in it. */
export interface LeasedLimit {
  readonly queue: string;
  /** {@link WHOLE_QUEUE} for the queue. */
  readonly kind: string;
}

/** The `kind` in rows about a whole queue. */
export const WHOLE_QUEUE = '';

/** Which groups of a queue, by name. */
export interface GroupPage {
  readonly queue: string;
  /** The last group of the page before; '' for the first page. */
  readonly after: string;
  readonly limit: number;
}

/** Runs a statement about limits. @throws as `queryRows`, with the line that the app's schema lacks */
export async function queryLimitRows(
  db: Executor | Runner,
  tables: QueueTables,
  query: SQL,
): Promise<RawRow[]> {
  return await queryRows(db, tables, query, { entry: CONTROL_ENTRY });
}
