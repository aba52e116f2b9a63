import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { fitsFilter } from '../../sql/job-filter.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';
import { ownRecord, selectOwn } from '../../sql/own-values.ts';
import { timeIsWithin } from '../../sql/time-range.ts';

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
  /** The own columns of that one. */
  readonly own: Readonly<Record<string, unknown>>;
  /** The ids of the newest of them, which name the group without saying anything of its errors. */
  readonly newest: readonly number[];
  /** When these were seen: all of them were discarded before. */
  readonly seenAt: Date;
}

export interface ErrorsToGroup {
  readonly scope: JobScope;
  readonly kind?: string | undefined;
  readonly queue?: string | undefined;
  /** Only those that were discarded within this many hours; all of them without it. */
  readonly hours?: number | undefined;
  /** How many of the newest discarded jobs to read. */
  readonly bound: number;
  readonly limit: number;
}

/**
 * The newest discarded jobs, grouped by queue, kind and the cause of their last error, most jobs first. An
 * index has only these, so it costs nothing how many others were completed meanwhile.
 *
 * **Under concurrency.** A plain read of one snapshot; a redrive meanwhile makes a count too large.
 */
export async function groupErrors(
  db: Executor,
  tables: QueueTables,
  errors: ErrorsToGroup,
): Promise<ErrorGroup[]> {
  const rows = await queryRows(db, tables, groupErrorsQuery(tables, errors));
  const own = ownColumnsOf(tables.queueJobs);
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
    own: ownRecord(own, row),
    // An array as Postgres writes it.
    newest: String(row.newest).slice(1, -1).split(',').map(Number),
    // Rounded up: what has ended in the same millisecond is among them.
    seenAt: new Date(dateOf(row.seen_at).getTime() + 1),
  }));
}

/** What differs between two errors of one cause: UUIDs, hexadecimal numbers, and numbers. */
const HEX = '[0-9a-fA-F]';
const UUID = [8, 4, 4, 4, 12].map((digits) => `${HEX}{${digits}}`).join('-');
const DIFFERING = sql.raw(`'${UUID}|0[xX]${HEX}+|[0-9]+'`);

/** The cause of a job `j` or a result `r`: the message of its newest error without what differs. */
export function causeOf(alias: 'j' | 'r'): SQL {
  const errors = sql.raw(`${alias}.errors`);
  return sql`regexp_replace(left(coalesce(${errors} -> -1 ->> 'message', ''), 300),
          ${DIFFERING}, '#', 'g')`;
}

/** So many ids name a group: another operator may have put back some of its jobs meanwhile. */
const NAMING = 5;

export function groupErrorsQuery(tables: QueueTables, errors: ErrorsToGroup): SQL {
  const own = ownColumnsOf(tables.queueJobs);
  const ownOfNewest = own.map((_, index) => {
    const name = `own_${index}`;
    return sql.raw(`, (array_agg(d.${name} order by d.job_id desc))[1] as ${name}`);
  });
  return sql`
    select d.queue, d.kind, d.name, d.cause, count(*)::float8 as jobs,
      ${epochMs('min(d.finished_at)')} as first_at, ${epochMs('max(d.finished_at)')} as last_at,
      max(d.job_id)::float8 as sample_id, (array_agg(d.message order by d.job_id desc))[1] as message,
      (array_agg(d.job_id order by d.job_id desc))[1:${sql.raw(String(NAMING))}]::text as newest,
      ${epochMs('statement_timestamp()')} as seen_at${sql.join(ownOfNewest)}
    from (${discardedByCause(tables, errors, selectOwn(own, 'r'))}) as d
    group by d.queue, d.kind, d.name, d.cause
    order by count(*) desc, max(d.finished_at) desc limit ${errors.limit}`;
}

interface DiscardedByCause extends Omit<ErrorsToGroup, 'limit'> {
  /** The newest that ended before a time, without those that ended before another. */
  readonly finishedBefore?: Date | undefined;
  readonly finishedAfter?: Date | undefined;
  /** Only larger ids. */
  readonly after?: number | undefined;
}

/** The newest discarded jobs, with the cause of each: its message without numbers and ids. */
export function discardedByCause(
  { queueResults }: QueueTables,
  { scope, kind, queue, hours, bound, finishedBefore, finishedAfter, after }: DiscardedByCause,
  own: SQL = sql``,
): SQL {
  const within = [
    sql`r.state = 'discarded'`,
    ...(hours === undefined
      ? []
      : [sql`r.finished_at > statement_timestamp() - ${hours}::float8 * interval '1 hour'`]),
    ...timeIsWithin(sql`r.finished_at`, { after: finishedAfter, before: finishedBefore }),
  ];
  const conditions = [
    sql`true`,
    ...inScope(scope, 'r'),
    ...fitsFilter({ kind, queue }, 'r'),
    ...(after === undefined ? [] : [sql`r.job_id > ${after}::int8`]),
  ];
  return sql`
      select r.job_id, r.queue, r.kind, r.finished_at,
        coalesce(r.errors -> -1 ->> 'name', '') as name,
        left(coalesce(r.errors -> -1 ->> 'message', ''), 500) as message,
        ${causeOf('r')} as cause${own}
      from (
        select r.* from ${queueResults} as r where ${sql.join(within, sql` and `)}
        order by r.finished_at desc limit ${bound}
      ) as r
      where ${sql.join(conditions, sql` and `)}`;
}
