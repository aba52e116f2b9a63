import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';
import { ownRecord, selectOwn } from '../../sql/own-values.ts';
import { failedJobs, isRetrying } from '../../sql/retrying.ts';
import { causeOf, type ErrorGroup } from './group-errors.ts';

/** Jobs of one kind that wait for their next attempt after the same error. */
export interface RetryingGroup
  extends Pick<ErrorGroup, 'queue' | 'kind' | 'name' | 'cause' | 'jobs' | 'sampleId' | 'message' | 'own'> {
  /** When the first of them is tried again, or was to be. */
  readonly nextAt: Date;
}

/**
 * The jobs that have failed and wait for their next attempt, grouped by the cause of their last error, most
 * jobs first. It reads `bound` failed jobs at most, by an index.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function groupRetrying(
  db: Executor,
  tables: QueueTables,
  retrying: { readonly scope: JobScope; readonly bound: number; readonly limit: number },
): Promise<RetryingGroup[]> {
  const rows = await queryRows(db, tables, groupRetryingQuery(tables, retrying));
  const own = ownColumnsOf(tables.queueJobs);
  return rows.map((row) => ({
    queue: String(row.queue),
    kind: String(row.kind),
    name: String(row.name),
    cause: String(row.cause),
    jobs: Number(row.jobs),
    nextAt: dateOf(row.next_at),
    sampleId: Number(row.sample_id),
    message: String(row.message),
    own: ownRecord(own, row),
  }));
}

/** @crossesQueues groups the failed jobs of all queues */
export function groupRetryingQuery(
  tables: QueueTables,
  { scope, bound, limit }: { readonly scope: JobScope; readonly bound: number; readonly limit: number },
): SQL {
  const own = ownColumnsOf(tables.queueJobs);
  const ownOfNewest = own.map((_, index) => {
    const name = `own_${index}`;
    return sql.raw(`, (array_agg(d.${name} order by d.id desc))[1] as ${name}`);
  });
  return sql`
    select d.queue, d.kind, d.name, d.cause, count(*)::float8 as jobs, ${epochMs('min(d.run_at)')} as next_at,
      max(d.id)::float8 as sample_id, (array_agg(d.message order by d.id desc))[1] as message${sql.join(
        ownOfNewest,
      )}
    from (
      select j.id, j.queue, j.kind, j.run_at, coalesce(j.errors -> -1 ->> 'name', '') as name,
        left(coalesce(j.errors -> -1 ->> 'message', ''), 500) as message,
        ${causeOf('j')} as cause${selectOwn(own, 'j')}
      from ${failedJobs(tables, bound)} as j
      where ${sql.join([isRetrying, ...inScope(scope, 'j')], sql` and `)}
    ) as d
    group by d.queue, d.kind, d.name, d.cause
    order by count(*) desc, max(d.id) desc limit ${limit}`;
}
