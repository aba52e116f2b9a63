import { type SQL, sql } from 'drizzle-orm';
import { MAX_PRIORITY } from '../../job/limits.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { epochMs } from '../../sql/epoch-ms.ts';
import { queryRows, type RawRow, type Runner } from '../../sql/executor.ts';
import { perStatement, queueOf } from '../../sql/one-queue.ts';
import { planAnew } from '../../sql/plan-anew.ts';
import { servedKind } from '../../sql/served-kind.ts';
import { isOf, type TableSize, tableSize } from '../../sql/table-size.ts';
import { throughIndex } from '../../sql/through-index.ts';
import { timestampText } from '../../sql/timestamp-text.ts';

export interface DueLook {
  readonly queue: string;
  /** Jobs with an earlier `run_at` are left out; milliseconds since 1970, or `-Infinity` for none. */
  readonly floorMs: number;
}

export interface DueQuestion {
  readonly looks: readonly DueLook[];
  readonly kinds: readonly string[];
  /** How far ahead to look, in milliseconds. */
  readonly horizonMs: number;
  /** Reads nothing unless the table is of this size: see `findDueByKeptPlan`. @default undefined any */
  readonly ifTableIs?: TableSize | undefined;
}

/** What there is to do in one queue. */
export interface DueAnswer {
  readonly queue: string;
  /** Milliseconds until the next job is due, 0 or less when one is; `undefined` for none in the horizon. */
  readonly dueInMs: number | undefined;
  /** When the database looked, in milliseconds since 1970. */
  readonly nowMs: number;
}

/**
 * Asks for many queues at once whether a claim would find a job, and when the next one is due: one statement
 * for all idle queues of a process, instead of a claim for each.
 *
 * **Under concurrency.** A plain read, which locks nothing. Another worker may claim what it found, and a job
 * that commits a moment later is not seen. So it only tells when to claim.
 *
 * It finds its rows as a claim does, by one exact index range per queue and priority, and reads one of each
 * (on Citus by a statement per queue). The horizon ends the range: jobs scheduled for tomorrow cost nothing.
 * For many queues it first asks which priorities exist: most apps use one or two of the ten. Under an old
 * snapshot that question walks over dead rows, so for a few queues it is skipped.
 */
export async function findDue(
  runner: Runner,
  tables: QueueTables,
  question: DueQuestion,
): Promise<DueAnswer[]> {
  const rows: RawRow[] = [];
  for (const looks of perStatement(tables, question.looks)) {
    rows.push(...(await queryRows(runner, tables, findDueQuery(tables, { ...question, looks }))));
  }
  return rows.map(toDueAnswer);
}

/**
 * The same of one queue by a prepared statement that Postgres plans once, which takes a fifth of the time.
 * See `TableSize` for what its plan may be: with more queues, one for an empty table would read a small one
 * too often.
 *
 * @returns `undefined` where the table is of another size: then it has read nothing
 */
export async function findDueByKeptPlan(
  runner: Runner,
  tables: QueueTables,
  question: DueQuestion & { readonly ifTableIs: TableSize },
): Promise<DueAnswer[] | undefined> {
  const rows = await queryRows(runner, tables, findDueQuery(tables, question));
  return rows[0]?.[question.ifTableIs] === true ? rows.map(toDueAnswer) : undefined;
}

/** Of the columns `queue`, `due_at` and `now`. */
export function toDueAnswer(row: RawRow): DueAnswer {
  return {
    queue: String(row.queue),
    dueInMs: row.due_at === null ? undefined : Number(row.due_at) - Number(row.now),
    nowMs: Number(row.now),
  };
}

/** Fewer queues have fewer ranges than it takes to find out which priorities there are. */
const MANY_QUEUES = 100;

/**
 * @crossesQueues (of many queues) first asks which priorities there are in any queue
 * @insteadOnCitus (plain; of many queues) findDueQuery, of one queue
 * @insteadOnCitus (of a small table; of a grown table) findDueQuery, of one queue: the size of the
 * coordinator's table is 0
 */
export function findDueQuery({ queueJobs }: QueueTables, question: DueQuestion): SQL {
  const priorities = sql`generate_series(0, ${sql.raw(String(MAX_PRIORITY))}) as band(priority)`;
  const inUse = sql`(
      select p.priority from generate_series(0, ${sql.raw(String(MAX_PRIORITY))}) as p(priority)
      cross join lateral (
        select from ${queueJobs} as j where j.priority = p.priority::int2 and j.group_key is null
        order by j.queue, j.run_at, j.id limit 1
      ) as j
      offset 0
    ) as band`;
  const { ifTableIs } = question;
  const size = ifTableIs
    ? sql`
    with ${tableSize(queueJobs, ifTableIs)}
    `
    : sql`
    `;
  const ofSize = ifTableIs ? sql`, ${isOf(ifTableIs)} as ${sql.raw(ifTableIs)}` : sql``;
  const anew = ifTableIs
    ? sql``
    : sql`${planAnew()}
    cross join `;
  const now = epochMs('statement_timestamp()');
  return sql`${size}select i.queue, min(${epochMs('j.run_at')}) as due_at, ${now} as now${ofSize}
    from ${anew}jsonb_to_recordset(${JSON.stringify(question.looks.map(toLookRow))}::text::jsonb)
      as i(queue text, floor timestamptz)
    ${question.looks.length > MANY_QUEUES ? sql`left join ${inUse} on true` : sql`cross join ${priorities}`}
    left join lateral (
      select j.run_at from ${queueJobs} as j
      where j.queue = ${queueOf(question.looks, 'i.queue')}
        and j.priority = band.priority::int2 and ${throughIndex(sql`j.group_key is null`)}
        and j.run_at >= i.floor
        and j.run_at <= statement_timestamp() + ${question.horizonMs}::float8 * interval '1 millisecond'
        and j.worker_id is null and ${servedKind(question.kinds)}${
          ifTableIs
            ? sql`
        and ${isOf(ifTableIs)}`
            : sql``
        }
      order by j.run_at, j.id limit 1
    ) as j on true
    group by i.queue`;
}

function toLookRow({ queue, floorMs }: DueLook): object {
  return { queue, floor: timestampText(floorMs) };
}
