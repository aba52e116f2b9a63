import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../schema/own-columns.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { type JobRecord, liveRecords, resultRecords, toJobRecord } from '../sql/job-record.ts';
import { writtenHere } from './written-here.ts';

/** Which jobs are asked for. */
export interface WrittenJobs {
  /** @default undefined any */
  readonly kind?: string | undefined;
  /** Only jobs with a higher id. */
  readonly after: number;
  /** Whether only those that this transaction has written. */
  readonly written: boolean;
}

/** Jobs, live and finished, oldest first. */
export async function findWrittenJobs(
  db: Executor,
  tables: QueueTables,
  question: WrittenJobs,
): Promise<JobRecord[]> {
  const own = ownColumnsOf(tables.queueJobs);
  const rows = await queryRows(db, tables, findWrittenJobsQuery(tables, question));
  return rows.map((row) => toJobRecord(row, own));
}

export function findWrittenJobsQuery(tables: QueueTables, { kind, after, written }: WrittenJobs): SQL {
  const of = (alias: 'j' | 'r', id: SQL) =>
    sql`${id} > ${after}::int8${
      kind === undefined ? sql`` : sql` and ${sql.raw(alias)}.kind = ${kind}::text`
    }${written ? sql` and ${writtenHere(alias)}` : sql``}`;
  return sql`
    select * from (${liveRecords(tables, of('j', sql`j.id`))}
      union all ${resultRecords(tables, of('r', sql`r.job_id`))}
    ) as found order by id`;
}

/** The highest id of a job, live or finished; 0 where there is none. An enqueue after it has a higher one. */
export async function highestId(db: Executor, tables: QueueTables): Promise<number> {
  const { queueJobs, queueResults } = tables;
  const [row] = await queryRows(
    db,
    tables,
    sql`select greatest(
      (select max(id) from ${queueJobs}), (select max(job_id) from ${queueResults}), 0) as id`,
  );
  return Number(row?.id);
}
