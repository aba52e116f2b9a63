import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import type { JobScope } from '../../sql/job-scope.ts';
import { isClaimRefused } from '../../sql/refused-claim.ts';
import { type JobSearch, jobFits } from './browse-jobs.ts';

export type ManyAction = 'cancel' | 'redrive' | 'run-now';

/** Jobs that a user has chosen: all that match a search, or some of them, if the action applies to them. */
export interface ManyJobs {
  /** `force`: also those that were asked to end already. */
  readonly action: ManyAction | 'force';
  readonly search: JobSearch;
  readonly scope: JobScope;
  readonly ids: readonly number[] | undefined;
}

/** A part of them, by id. */
export interface ManySlice extends ManyJobs {
  readonly after: number;
  readonly until: number;
  readonly limit: number;
}

/**
 * Counts them, and says which is the last of them. It may read a whole table: see `withinTime`.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countMany(
  db: Executor,
  tables: QueueTables,
  many: ManyJobs,
): Promise<{ readonly jobs: number; readonly until: number }> {
  const [row] = await queryRows(db, tables, countManyQuery(tables, many));
  return { jobs: Number(row?.jobs), until: Number(row?.until) };
}

export function countManyQuery(tables: QueueTables, many: ManyJobs): SQL {
  const { rows, id } = tableOf(tables, many);
  return sql`
    select count(*)::float8 as jobs, coalesce(max(${id}), 0)::float8 as until
    from ${rows} where ${areMeant(many)}`;
}

/**
 * The ids of the first of them, in order.
 *
 * **Under concurrency.** A plain read. A later change by id leaves alone the jobs that no longer match.
 */
export async function findMany(db: Executor, tables: QueueTables, slice: ManySlice): Promise<number[]> {
  const rows = await queryRows(db, tables, findManyQuery(tables, slice));
  return rows.map(({ id }) => Number(id));
}

/** @crossesQueues a filter may match jobs of every queue */
export function findManyQuery(tables: QueueTables, slice: ManySlice): SQL {
  const { rows, id } = tableOf(tables, slice);
  return sql`
    select ${id} as id from ${rows}
    where ${id} > ${slice.after}::int8 and ${id} <= ${slice.until}::int8 and ${areMeant(slice)}
    order by ${id} limit ${slice.limit}`;
}

function tableOf({ queueJobs, queueResults }: QueueTables, { action }: ManyJobs): { rows: SQL; id: SQL } {
  return action === 'redrive'
    ? { rows: sql`${queueResults} as r`, id: sql.raw('r.job_id') }
    : { rows: sql`${queueJobs} as j`, id: sql.raw('j.id') };
}

function areMeant({ action, search, scope, ids }: ManyJobs): SQL {
  const alias = action === 'redrive' ? 'r' : 'j';
  const conditions = [jobFits({ search, scope }, alias), canBe(action, search)];
  if (ids !== undefined) {
    const id = sql.raw(alias === 'r' ? 'r.job_id' : 'j.id');
    conditions.push(sql`${id} = any(array(select unnest(${arrayText(ids)}::text::int8[])))`);
  }
  return sql.join(conditions, sql` and `);
}

/**
 * The states in which the action is possible; cancelled jobs are put back only when the search asks for them.
 */
function canBe(action: ManyJobs['action'], { state }: JobSearch): SQL {
  switch (action) {
    case 'cancel':
      return sql.raw('j.cancel_reason is null');
    case 'force':
      return sql.raw('true');
    case 'run-now':
      return sql`j.worker_id is null and j.run_at > statement_timestamp()
        and (j.run_at < 'infinity' or ${isClaimRefused})`;
    case 'redrive':
      return sql.raw(`r.state = '${state === 'cancelled' ? 'cancelled' : 'discarded'}'`);
  }
}
