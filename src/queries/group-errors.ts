import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { inScope, type JobScope } from '../sql/job-scope.ts';

/** Discarded jobs of one kind with one cause. */
export interface ErrorGroup {
  readonly queue: string;
  readonly kind: string;
  readonly name: string;
  /** The message, with `#` in the place of numbers and ids. */
  readonly cause: string;
  readonly jobs: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** The newest of them. */
  readonly sampleId: number;
  /** The message of that one, as it is. */
  readonly message: string;
  /** When these were seen: all of them were discarded before. */
  readonly seenAt: Date;
}

export interface ErrorsToGroup {
  readonly scope: JobScope;
  readonly kind?: string | undefined;
  readonly queue?: string | undefined;
  /** How many of the newest results to read. */
  readonly bound: number;
  readonly limit: number;
}

/**
 * The discarded jobs among the newest results, grouped by queue, kind and the cause of their last error, most
 * jobs first.
 *
 * **Under concurrency.** A plain read of one snapshot; a redrive meanwhile makes a count too large.
 */
export async function groupErrors(
  db: Executor,
  tables: QueueTables,
  errors: ErrorsToGroup,
): Promise<ErrorGroup[]> {
  const rows = await queryRows(db, tables, groupErrorsQuery(tables, errors));
  return rows.map((row) => ({
    queue: String(row.queue),
    kind: String(row.kind),
    name: String(row.name),
    cause: String(row.cause),
    jobs: Number(row.jobs),
    firstAt: dateOf(row.first_at),
    lastAt: dateOf(row.last_at),
    sampleId: Number(row.sample_id),
    message: String(row.message),
    // Rounded up: what has ended in the same millisecond is among them.
    seenAt: new Date(dateOf(row.seen_at).getTime() + 1),
  }));
}

/** What differs between two errors of one cause: UUIDs, hexadecimal numbers, and numbers. */
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const DIFFERING = sql.raw(`'${UUID}|0x[0-9a-f]+|[0-9]+'`);

export function groupErrorsQuery(tables: QueueTables, errors: ErrorsToGroup): SQL {
  return sql`
    select d.queue, d.kind, d.name, d.cause, count(*)::float8 as jobs,
      ${epochMs('min(d.finished_at)')} as first_at, ${epochMs('max(d.finished_at)')} as last_at,
      max(d.job_id)::float8 as sample_id, (array_agg(d.message order by d.job_id desc))[1] as message,
      ${epochMs('statement_timestamp()')} as seen_at
    from (${discardedByCause(tables, errors)}) as d
    group by d.queue, d.kind, d.name, d.cause
    order by count(*) desc, max(d.finished_at) desc limit ${errors.limit}`;
}

interface DiscardedByCause extends Omit<ErrorsToGroup, 'limit'> {
  /** Of these results: the newest that ended before a time, without those that ended before another. */
  readonly finishedBefore?: Date | undefined;
  readonly finishedAfter?: Date | undefined;
  /** Only larger ids. */
  readonly after?: number | undefined;
}

/** The discarded ones of the newest results, with the cause of each: its message without numbers and ids. */
export function discardedByCause(
  { queueResults }: QueueTables,
  { scope, kind, queue, bound, finishedBefore, finishedAfter, after }: DiscardedByCause,
): SQL {
  const within = [
    ...(finishedBefore === undefined
      ? []
      : [sql`r.finished_at < ${finishedBefore.toISOString()}::timestamptz`]),
    ...(finishedAfter === undefined
      ? []
      : [sql`r.finished_at >= ${finishedAfter.toISOString()}::timestamptz`]),
  ];
  const conditions = [
    sql`r.state = 'discarded'`,
    ...inScope(scope, 'r'),
    ...(kind === undefined ? [] : [sql`r.kind = ${kind}`]),
    ...(queue === undefined ? [] : [sql`r.queue = ${queue}`]),
    ...(after === undefined ? [] : [sql`r.job_id > ${after}::int8`]),
  ];
  return sql`
      select r.job_id, r.queue, r.kind, r.finished_at,
        coalesce(r.errors -> -1 ->> 'name', '') as name,
        left(coalesce(r.errors -> -1 ->> 'message', ''), 500) as message,
        regexp_replace(left(coalesce(r.errors -> -1 ->> 'message', ''), 300),
          ${DIFFERING}, '#', 'gi') as cause
      from (
        select r.* from ${queueResults} as r${
          within.length === 0 ? sql`` : sql` where ${sql.join(within, sql` and `)}`
        } order by r.finished_at desc limit ${bound}
      ) as r
      where ${sql.join(conditions, sql` and `)}`;
}
