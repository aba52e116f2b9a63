import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../schema/own-columns.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import {
  type JobRecord,
  type JobState,
  liveRecords,
  liveState,
  resultRecords,
  toJobRecord,
} from '../sql/job-record.ts';
import { type OwnWanted, ownValue } from '../sql/own-values.ts';

export interface JobsPage {
  readonly kind: string | undefined;
  readonly queue: string | undefined;
  readonly group?: string | undefined;
  readonly state: JobState | undefined;
  readonly before: number | undefined;
  readonly limit: number;
  /** The values that own columns must have, as texts. */
  readonly own?: readonly OwnWanted[];
}

/**
 * Live jobs and results together, newest id first.
 *
 * **Under concurrency.** One statement, so one snapshot. Pages go by id, which a job keeps for life, so a job
 * that finishes between two pages is listed once.
 */
export async function listJobs(db: Executor, tables: QueueTables, page: JobsPage): Promise<JobRecord[]> {
  const rows = await queryRows(db, tables, listJobsQuery(tables, page));
  const own = ownColumnsOf(tables.queueJobs);
  return rows.map((row) => toJobRecord(row, own));
}

export function listJobsQuery(tables: QueueTables, page: JobsPage): SQL {
  const { kind, queue, group, state, before, limit, own = [] } = page;
  const where = (table: 'j' | 'r', id: string, stateText: SQL): SQL => {
    const column = (name: string) => sql.raw(`${table}.${name}`);
    const conditions = [
      before === undefined ? undefined : sql`${column(id)} < ${before}`,
      queue === undefined ? undefined : sql`${column('queue')} = ${queue}`,
      group === undefined ? undefined : sql`${column('group_key')} = ${group}`,
      kind === undefined ? undefined : sql`${column('kind')} = ${kind}`,
      state === undefined ? undefined : sql`${stateText} = ${state}`,
      ...own.map((wanted) => is(column(wanted.column.name), wanted)),
    ].filter((condition) => condition !== undefined);
    const all = conditions.length === 0 ? sql`true` : sql.join(conditions, sql` and `);
    // Ordered and limited inside each half, which then reads its primary key only as far as the page needs.
    return sql`${all} order by ${column(id)} desc limit ${limit}`;
  };
  // Only one table can have jobs of a given state; the other would be read to its end for nothing.
  const halves = [
    state === undefined || isLive(state)
      ? sql`(${liveRecords(tables, where('j', 'id', liveState))})`
      : undefined,
    state === undefined || !isLive(state)
      ? sql`(${resultRecords(tables, where('r', 'job_id', sql.raw('r.state')))})`
      : undefined,
  ].filter((half) => half !== undefined);
  return sql`
    select * from (
      ${sql.join(halves, sql` union all `)}
    ) as record
    order by id desc limit ${limit}`;
}

function is(column: SQL, { column: own, text }: OwnWanted): SQL {
  return text === null ? sql`${column} is null` : sql`${column} = ${ownValue(own, sql`${text}::text`)}`;
}

function isLive(state: JobState): boolean {
  return state === 'waiting' || state === 'scheduled' || state === 'due' || state === 'running';
}
