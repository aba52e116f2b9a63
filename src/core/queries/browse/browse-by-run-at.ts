import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { type JobLine, lineColumns, toJobLine } from '../../sql/job-line.ts';
import { isBehind, isUpTo, type JobPlace, runUs, runUsOf } from '../../sql/job-place.ts';
import type { LiveState } from '../../sql/job-record.ts';
import { throughIndex } from '../../sql/through-index.ts';
import { type JobsToBrowse, jobFits } from './browse-jobs.ts';
import type { Band } from './find-bands.ts';

export interface JobsByRunAt extends Pick<JobsToBrowse, 'search' | 'scope' | 'limit' | 'excerpt'> {
  readonly state: LiveState;
  /** The bands that `findBands` has found. */
  readonly bands: readonly Band[];
  readonly after: JobPlace;
  /** The most jobs to read of each band. */
  readonly bound: number;
}

/** A job and where it stands. */
export interface PlacedJob {
  readonly job: JobLine;
  readonly place: JobPlace;
}

/**
 * Live jobs in one state, the longest due or the next to be due first. The indexes of the claims have them in
 * this order, band by band, so a page costs the same whatever else there is.
 *
 * **Under concurrency.** A plain read of one snapshot. A job that is retried between two pages moves back, so
 * it may be on both.
 */
export async function browseByRunAt(
  db: Executor,
  tables: QueueTables,
  page: JobsByRunAt,
): Promise<PlacedJob[]> {
  const rows = await queryRows(db, tables, browseByRunAtQuery(tables, page));
  const own = ownColumnsOf(tables.queueJobs);
  return rows.map((row) => ({
    job: toJobLine(row, own),
    place: { runUs: runUsOf(row.run_us), id: Number(row.id) },
  }));
}

/**
 * First the bands whose first job that fits comes soonest, as many as the page has jobs: no other can have
 * one on it. So of hundreds of groups only those are read further, and none of them beyond the first job of
 * the last of them: up to there are enough.
 *
 * @crossesQueues a page over all queues; each band names its own
 * @insteadOnCitus browseJobsQuery
 */
export function browseByRunAtQuery(tables: QueueTables, page: JobsByRunAt): SQL {
  const { search, scope, state, limit } = page;
  const fits = jobFits({ search: { ...search, state }, scope }, 'j');
  const first = (most: number) => (rows: SQL) =>
    sql`
          select j.* from (${rows}
          ) as j
          where ${fits} order by j.run_at, j.id limit ${most}`;
  const [plain, grouped] = givenBands(page);
  const soonest = (isGrouped: boolean) =>
    sql`(select b.* from soonest as b where b."group" is ${
      isGrouped ? sql.raw('not null') : sql.raw('null')
    }) as b`;
  return sql`
    with soonest as materialized (
      select b.* from (${ofBands(tables, page, [plain, grouped], {
        columns: sql.raw('j.*'),
        read: first(1),
        answer: sql.raw('b.queue, b."group", b.priority, j.run_at, j.id'),
      })}
      ) as b
      order by b.run_at, b.id limit ${limit}
    )
    select ${lineColumns(tables, 'j', page.excerpt)}, ${runUs('j')} as run_us from (
      select * from (${ofBands(tables, page, [soonest(false), soonest(true)], {
        columns: sql.raw('j.*'),
        read: first(limit),
        upTo: sql`
              and j.run_at <= coalesce((
                select b.run_at from soonest as b order by b.run_at, b.id offset ${limit - 1} limit 1
              ), 'infinity')`,
      })}
      ) as j
      order by j.run_at, j.id limit ${limit}
    ) as j
    order by j.run_at, j.id`;
}

export interface ReadToEnd extends Pick<JobsByRunAt, 'state' | 'bands' | 'after' | 'bound'> {
  /** An end behind this place is not looked for. */
  readonly until?: JobPlace | undefined;
}

/**
 * How far all bands were read: the first place at which the reading of one of them has stopped at its bound;
 * `undefined` where none has.
 *
 * **Under concurrency.** A plain read. What is inserted before the place between the two reads is left out.
 */
export async function findReadEnd(
  db: Executor,
  tables: QueueTables,
  page: ReadToEnd,
): Promise<JobPlace | undefined> {
  const [row] = await queryRows(db, tables, findReadEndQuery(tables, page));
  return row && { runUs: runUsOf(row.run_us), id: Number(row.id) };
}

/**
 * @crossesQueues how far a page over all queues was read; each band names its own
 * @insteadOnCitus browseJobsQuery
 */
export function findReadEndQuery(tables: QueueTables, page: ReadToEnd): SQL {
  const last = (rows: SQL) => sql`${rows} offset ${page.bound - 1}`;
  return sql`
    select j.id, ${runUs('j')} as run_us from (${ofBands(tables, page, givenBands(page), {
      columns: sql.raw('j.run_at, j.id'),
      read: last,
    })}
    ) as j
    order by j.run_at, j.id limit 1`;
}

/** The bands without groups and those of groups, for a `FROM`; none whose first job comes too late. */
function givenBands({ state, bands, until }: ReadToEnd): [plain: SQL, grouped: SQL] {
  const mustBeDue = state === 'due' || state === 'running';
  const isInTime = ({ first }: Band) =>
    first === undefined ||
    ((first.isDue || !mustBeDue) && (until === undefined || first.runUs <= until.runUs));
  const those = (grouped: boolean) => {
    const given = bands.filter((band) => (band.group !== null) === grouped && isInTime(band));
    const text = JSON.stringify(given.map(({ queue, group, priority }) => ({ queue, group, priority })));
    return sql`jsonb_to_recordset(${text}::text::jsonb) as b(queue text, "group" text, priority int2)`;
  };
  return [those(false), those(true)];
}

interface BandReading {
  /** What is read of each job. */
  readonly columns: SQL;
  /** Which of them, as a further condition on `j`. */
  readonly upTo?: SQL;
  /** What becomes of a band's rows, in their order. */
  readonly read: (rows: SQL) => SQL;
  /** @default what is read of `j` */
  readonly answer?: SQL;
}

/** What is read of each band, for a `FROM`. */
function ofBands(
  { queueJobs }: QueueTables,
  { state, after, bound, until }: Omit<ReadToEnd, 'bands'>,
  [plain, grouped]: readonly [SQL, SQL],
  { columns, read, upTo = sql``, answer = sql.raw('j.*') }: BandReading,
): SQL {
  const rows = (group: SQL) => sql`
            select ${columns} from ${queueJobs} as j
            where j.queue = b.queue and j.priority = b.priority and ${group}${RANGES[state]}
              and ${isBehind(after)}${until === undefined ? sql`` : sql` and ${isUpTo(until)}`}${upTo}
            order by j.run_at, j.id limit ${bound}`;
  return sql`
        (select ${answer} from ${plain}
        cross join lateral (${read(rows(throughIndex(sql.raw('j.group_key is null'))))}
        ) as j)
        union all
        (select ${answer} from ${grouped}
        cross join lateral (${read(rows(sql.raw('j.group_key = b."group"')))}
        ) as j)`;
}

/** The part of a band that a state is in; only due jobs are claimed. */
const RANGES: Readonly<Record<LiveState, SQL>> = {
  running: sql.raw(' and j.run_at <= statement_timestamp()'),
  due: sql.raw(' and j.run_at <= statement_timestamp()'),
  scheduled: sql.raw(" and j.run_at > statement_timestamp() and j.run_at < 'infinity'"),
  waiting: sql.raw(" and j.run_at = 'infinity'"),
};
