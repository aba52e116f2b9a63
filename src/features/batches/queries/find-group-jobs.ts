import { type SQL, sql } from 'drizzle-orm';
import { ownColumnsOf } from '../../../core/schema/own-columns.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { type JobLine, lineColumns, toJobLine } from '../../../core/sql/job-line.ts';
import { type JobState, liveState } from '../../../core/sql/job-record.ts';
import { inScope, type JobScope } from '../../../core/sql/job-scope.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

export interface JobsOfGroup {
  readonly batchId: number;
  /** `undefined`: of any kind, whatever it waits for. */
  readonly kind: string | undefined;
  readonly after: readonly number[];
  readonly state: JobState | undefined;
  /** Only ids above this one. */
  readonly above: number;
  readonly limit: number;
  readonly scope: JobScope;
  /** How many characters of each payload are read. */
  readonly excerpt: number;
}

/** Jobs of a group, the smallest ids first. **Under concurrency.** A plain read, so one snapshot. */
export async function findGroupJobs(
  db: Runner,
  tables: TablesOfBatches,
  group: JobsOfGroup,
): Promise<JobLine[]> {
  const rows = await queryRows(db, tables, findGroupJobsQuery(tables, group), { entry: BATCHES_ENTRY });
  const own = ownColumnsOf(tables.queueJobs);
  return rows.map((row) => toJobLine(row, own));
}

/** @crossesQueues the members of a batch may be in any queue */
export function findGroupJobsQuery(tables: TablesOfBatches, group: JobsOfGroup): SQL {
  const { queueJobs, queueResults, queueWaits } = tables;
  const { batchId, kind, after, state, above, limit, scope, excerpt } = group;
  const where = (alias: 'j' | 'r', id: string) => {
    const [of, key] = [sql.raw(alias), sql.raw(id)];
    const waitsFor = sql`coalesce((
        select array_agg(w.batch_id order by w.batch_id) from ${queueWaits} as w
        where w.job_id = ${key} and w.queue = ${of}.queue and w.policy in ('run', 'cancel')
      ), '{}'::int8[])`;
    return sql.join(
      [
        // A range of one batch: see `find-flow-groups`. With the id apart, its key would be read as well.
        sql`(${of}.batch_id, ${key}) > (${batchId}::int8, ${above}::int8)
          and ${of}.batch_id <= ${batchId}::int8`,
        ...(kind === undefined
          ? []
          : [sql`${of}.kind = ${kind}`, sql`${waitsFor} = ${arrayText(after)}::text::int8[]`]),
        ...(state === undefined ? [] : [sql`(${alias === 'j' ? liveState : sql`r.state`}) = ${state}`]),
        ...inScope(scope, alias),
      ],
      sql` and `,
    );
  };
  return sql`
    (
      select ${lineColumns(tables, 'j', excerpt)} from ${queueJobs} as j where ${where('j', 'j.id')}
      order by j.batch_id, j.id limit ${limit}::int4
    )
    union all
    (
      select ${lineColumns(tables, 'r', excerpt)} from ${queueResults} as r where ${where('r', 'r.job_id')}
      order by r.batch_id, r.job_id limit ${limit}::int4
    )
    order by id limit ${limit}::int4`;
}
