import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../core/schema/index.ts';
import type { Executor, JobRecord } from '../../index.ts';
import { ownColumnsOf, queryRows, quotedName, type RawRow } from '../../internal.ts';
import { liveRecords, type Runner, resultRecords, toJobRecord } from '../../testing-face.ts';
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

/** By a transaction: how many rows of each table its connection had deleted before it. */
const deletedBefore = new WeakMap<object, ReadonlyMap<number, number>>();

/**
 * Remembers what the server counts at the beginning of a transaction: it still has the deletions of those
 * that ran on the same connection a moment ago.
 */
export async function noteDeletions(tx: Runner): Promise<void> {
  const answer = await tx.execute(
    sql`select relid::int8 as id, n_tup_del::float8 as deleted
      from pg_stat_xact_user_tables where n_tup_del > 0`,
  );
  const rows: readonly RawRow[] = Array.isArray(answer) ? answer : Object(answer).rows;
  deletedBefore.set(tx, new Map(rows.map(({ id, deleted }) => [Number(id), Number(deleted)])));
}

/**
 * Whether a transaction has deleted live jobs, as every end of a job does. By the server's counters, which
 * include what a savepoint has undone, and outside of `inTransaction` the transaction before it: it may be
 * true where nothing has ended.
 */
export async function hasEndedJobs(tx: Executor, tables: QueueTables): Promise<boolean> {
  const { queueJobs } = tables;
  const before = deletedBefore.get(tx);
  const rows = await queryRows(
    tx,
    tables,
    sql`select t.id::int8 as id, pg_stat_get_xact_tuples_deleted(t.id)::float8 as deleted
      from (
        select ${quotedName(queueJobs)}::text::regclass as id
        union select relid from pg_partition_tree(${quotedName(queueJobs)}::text::regclass)
      ) as t`,
  );
  return rows.some(({ id, deleted }) => Number(deleted) > (before?.get(Number(id)) ?? 0));
}
