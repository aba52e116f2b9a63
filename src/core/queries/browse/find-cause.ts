import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';
import { ownRecord, selectOwn } from '../../sql/own-values.ts';
import { causeOf, type ErrorGroup } from './group-errors.ts';

/** Which discarded jobs name a group of errors: see `ErrorGroup.newest`. */
export interface NamedCause {
  readonly scope: JobScope;
  readonly ids: readonly number[];
  /** One that was discarded again since has another cause, perhaps. */
  readonly finishedBefore: Date;
}

/** A group of errors, with the newest of the jobs that have named it. */
export interface CauseFound extends Pick<ErrorGroup, 'queue' | 'kind' | 'name' | 'cause' | 'own'> {
  readonly id: number;
}

/**
 * The group of errors that some discarded jobs name; `undefined` when none of them stands there any more.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function findCause(
  db: Executor,
  tables: QueueTables,
  named: NamedCause,
): Promise<CauseFound | undefined> {
  const [row] = await queryRows(db, tables, findCauseQuery(tables, named));
  return (
    row && {
      id: Number(row.job_id),
      queue: String(row.queue),
      kind: String(row.kind),
      name: String(row.name),
      cause: String(row.cause),
      own: ownRecord(ownColumnsOf(tables.queueJobs), row),
    }
  );
}

export function findCauseQuery(tables: QueueTables, { scope, ids, finishedBefore }: NamedCause): SQL {
  const conditions = [
    sql`r.job_id = any(array(select unnest(${arrayText(ids)}::text::int8[])))`,
    sql`r.state = 'discarded' and r.finished_at < ${finishedBefore.toISOString()}::timestamptz`,
    ...inScope(scope, 'r'),
  ];
  return sql`
    select r.job_id::float8 as job_id, r.queue, r.kind, coalesce(r.errors -> -1 ->> 'name', '') as name,
      ${causeOf('r')} as cause${selectOwn(ownColumnsOf(tables.queueJobs), 'r')}
    from ${tables.queueResults} as r
    where ${sql.join(conditions, sql` and `)}
    order by r.job_id desc limit 1`;
}
