import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { type JobRecord, resultRecords, toJobRecord } from '../../sql/job-record.ts';
import type { JobScope } from '../../sql/job-scope.ts';
import { type JobSearch, jobFits } from './browse-jobs.ts';

/** Where a reader of ended jobs stands: behind the job that ended then and has this id. */
export interface EndPlace {
  /** Microseconds since 1970: two jobs of one millisecond have their order. */
  readonly endedUs: number;
  readonly id: number;
}

export interface EndedJobs {
  readonly search: JobSearch;
  readonly after: EndPlace;
  /** How many ended jobs to read, whether they fit or not. */
  readonly limit: number;
}

export interface EndedFound {
  /** The jobs that fit, in the order in which they have ended. */
  readonly records: readonly JobRecord[];
  /** Behind the last one that was read. */
  readonly last: EndPlace;
  /** How many were read: fewer than `limit` at the end. */
  readonly read: number;
}

const EVERYTHING: JobScope = { queues: undefined, own: [] };

/** A transaction that is open for longer than this is not waited for. */
const OPEN_MS = 10_000;

/**
 * The place from which on results may still come, by the database's clock: the beginning of its oldest
 * transaction that writes or is in a statement, and ten seconds ago at most. A role that may not see the
 * transactions of others gets ten seconds ago.
 */
export async function findEndOfEnds(db: Executor, tables: QueueTables): Promise<EndPlace> {
  const [row] = await queryRows(
    db,
    tables,
    sql`
      select ${epochUs(sql`greatest(
        min(case when a.query = '<insufficient privilege>' then '-infinity' else a.xact_start end),
        statement_timestamp() - ${OPEN_MS}::float8 * interval '1 millisecond'
      )`)} as horizon
      from pg_stat_activity as a
      where a.datname = current_database()
        and (a.query = '<insufficient privilege>' or a.backend_xid is not null or a.state = 'active')`,
  );
  return { endedUs: Number(row?.horizon), id: 0 };
}

function epochUs(time: SQL): SQL {
  return sql`(extract(epoch from ${time}) * 1000000)::float8`;
}

/**
 * The next results in the order in which they ended, and of those the ones that fit. It reads the index of
 * `finished_at` from a place on, so neither a backlog nor old results cost anything.
 *
 * **Under concurrency.** One statement, so one snapshot. A job whose end commits later than that of another
 * may have an earlier place: read again from {@link findEndOfEnds}.
 */
export async function findEndedJobs(
  db: Executor,
  tables: QueueTables,
  ended: EndedJobs,
): Promise<EndedFound> {
  const rows = await queryRows(db, tables, findEndedJobsQuery(tables, ended));
  const own = ownColumnsOf(tables.queueJobs);
  const [first] = rows;
  const { after } = ended;
  return {
    records: rows.filter(({ id }) => id !== null).map((row) => toJobRecord(row, own)),
    last: first === undefined ? after : { endedUs: Number(first.last_us), id: Number(first.last_id) },
    read: Number(first?.read_count ?? 0),
  };
}

export function findEndedJobsQuery(tables: QueueTables, ended: EndedJobs): SQL {
  const { search, after, limit } = ended;
  const where = jobFits({ search, scope: EVERYTHING }, 'r');
  const time = sql`to_timestamp(${after.endedUs}::float8 / 1000000)`;
  // The filter stands outside: a place moves on over what does not fit, so that it is read once.
  const read = sql`(
        select r.* from ${tables.queueResults} as r
        where r.finished_at >= ${time} and (r.finished_at, r.job_id) > (${time}, ${after.id}::int8)
        order by r.finished_at, r.job_id limit ${limit}::int8
      )`;
  return sql`
    select f.*, p.last_us, p.last_id, p.read_count
    from (
      select ${epochUs(sql`e.finished_at`)} as last_us, e.job_id as last_id, count(*) over () as read_count
      from ${read} as e order by e.finished_at desc, e.job_id desc limit 1
    ) as p
    left join (${resultRecords(tables, where, read)}
    ) as f on true
    order by f.finished_at, f.id`;
}
