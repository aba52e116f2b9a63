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

/** A job's place in the order of claims. `runAtMs` has the microseconds as a fraction. */
export interface ClaimPlace {
  readonly priority: number;
  readonly runAtMs: number;
  readonly id: number;
}

/** How far the claims of one queue have come in one priority; milliseconds since 1970, or `-Infinity`. */
export interface Reach {
  /** Claims begin here: an unheld job before it is overlooked. */
  readonly floorMs: number;
  /** Claims have come up to here: a job before it that a worker held when it died is overlooked. */
  readonly endMs: number;
}

export interface OverlookedLook {
  readonly queue: string;
  readonly passed: readonly Reach[];
  /** Leaves out what became due more milliseconds than this before the floor. @default undefined nothing */
  readonly spanMs?: number | undefined;
  /** Where the last slice stopped; `undefined` to begin at the very start. */
  readonly after: ClaimPlace | undefined;
}

export interface OverlookedQuestion {
  /** Read one after the other, until the slice is full. */
  readonly looks: readonly OverlookedLook[];
  readonly kinds: readonly string[];
  readonly workerId: number;
  /** How many jobs to read at most, wanted or not. */
  readonly slice: number;
  /** Reads nothing unless the table is so: see `findOverlookedByKeptPlan`. @default undefined any size */
  readonly ifTableIs?: TableSize | undefined;
}

export interface OverlookedAnswer {
  /** The overlooked jobs, in claim order, by queue. */
  readonly found: ReadonlyMap<string, readonly ClaimPlace[]>;
  /** Where a full slice stopped; `undefined` when it came to the end of all queues. */
  readonly stopped: { readonly queue: string; readonly after: ClaimPlace } | undefined;
}

/**
 * Reads the next slice of the jobs that claims have passed, and returns those that are due nevertheless:
 * their transaction committed late, their `run_at` was in the past from the start, they were given back at
 * their old place, or their worker is gone.
 *
 * **Under concurrency.** A plain read that locks nothing and waits for no other transaction. Another worker
 * may take or lock what it finds, so a claim by id tests all conditions again. A job that commits behind the
 * slice's position is found by the next pass.
 *
 * - One exact index range per queue and priority, from the position of the last slice to the end of what
 *   claims have passed.
 * - The slice bounds the rows that it reads, not those that it returns, so a million jobs of other kinds take
 *   many short statements instead of a long one. Dead rows do not count: under an old snapshot a slice takes
 *   longer.
 * - On Citus one statement, and one slice, for each queue.
 */
export async function findOverlooked(
  runner: Runner,
  tables: QueueTables,
  question: OverlookedQuestion,
): Promise<OverlookedAnswer> {
  // Where no claim has been yet, nothing was passed.
  if (question.looks.every((look) => toRanges(look).length === 0)) return toAnswer([], question);
  const read: RawRow[] = [];
  for (const looks of perStatement(tables, question.looks)) {
    const rows = await queryRows(runner, tables, findOverlookedQuery(tables, { ...question, looks }));
    read.push(...rows);
    if (rows.some((row) => isLastOf(question, row))) break;
  }
  return toAnswer(read, question);
}

/**
 * The same of one queue by a prepared statement that Postgres plans once, which takes most slices a fifth of
 * the time. See `TableSize` for what its plan may be: with more queues, one for an empty table would read a
 * small one too often.
 *
 * @returns `undefined` where the table is of another size: then it has read nothing
 */
export async function findOverlookedByKeptPlan(
  runner: Runner,
  tables: QueueTables,
  question: OverlookedQuestion & { readonly ifTableIs: TableSize },
): Promise<OverlookedAnswer | undefined> {
  if (question.looks.every((look) => toRanges(look).length === 0)) return toAnswer([], question);
  const rows = await queryRows(runner, tables, findOverlookedQuery(tables, question));
  if (rows.some(({ queue }) => queue === null)) return undefined;
  return toAnswer(rows, question);
}

function toAnswer(rows: readonly RawRow[], question: OverlookedQuestion): OverlookedAnswer {
  const found = new Map<string, ClaimPlace[]>();
  for (const row of rows) {
    if (row.overlooked !== true) continue;
    const queue = String(row.queue);
    const places = found.get(queue) ?? [];
    found.set(queue, places);
    places.push(toPlace(row));
  }
  for (const places of found.values()) places.sort(inClaimOrder);
  const last = rows.find((row) => isLastOf(question, row));
  return { found, stopped: last && { queue: String(last.queue), after: toPlace(last) } };
}

/** Whether the slice was full with this row. */
function isLastOf({ slice }: OverlookedQuestion, row: RawRow): boolean {
  return Number(row.place) === slice;
}

/**
 * @insteadOnCitus (plain) findOverlookedQuery, of one queue
 * @insteadOnCitus (of a small table; of a grown table) findOverlookedQuery, of one queue: the size of the
 * coordinator's table is 0
 */
export function findOverlookedQuery(
  { queueJobs, queueWorkers }: QueueTables,
  { looks, kinds, workerId, slice, ifTableIs }: OverlookedQuestion,
): SQL {
  const size = ifTableIs
    ? sql`
    with ${tableSize(queueJobs, ifTableIs)}
    `
    : sql`
    `;
  const ofSize = ifTableIs
    ? sql`
          and ${isOf(ifTableIs)}`
    : sql``;
  // The one row of another size.
  const other = ifTableIs
    ? sql`
    union all
    select null, null, null, null, null, null where ${isOf(ifTableIs)} is not true`
    : sql``;
  return sql`${size}select queue, priority, ${epochMs('run_at')} as run_at, id, overlooked, place
    from (
      select row_number() over () as place, s.*
      from ${
        ifTableIs
          ? sql``
          : sql`${planAnew()}
      cross join `
      }jsonb_to_recordset(${JSON.stringify(looks.flatMap(toRanges))}::text::jsonb)
        as i(queue text, priority int2, after timestamptz, after_id int8, floor timestamptz,
          "end" timestamptz)
      cross join lateral (
        select j.queue, j.priority, j.run_at, j.id,
          ${servedKind(kinds)} and case when j.worker_id is null then j.run_at < i.floor
            else j.worker_id <> ${workerId}::int8 
              and (j.worker_id in (select w.id from ${queueWorkers} as w)) is false
            end as overlooked
        from ${queueJobs} as j
        where j.queue = ${queueOf(looks, 'i.queue')} and j.priority = i.priority
          and ${throughIndex(sql`j.group_key is null`)}
          and (j.run_at, j.id) > (i.after, i.after_id) and j.run_at <= i."end"
          and j.run_at <= statement_timestamp()${ofSize}
        order by j.run_at, j.id limit (select ${slice}::int8)
      ) as s
      limit ${ifTableIs ? sql`(select ${slice}::int8)` : slice}
    ) as seen
    where overlooked or place = ${slice}::int8${other}`;
}

const START: ClaimPlace = { priority: 0, runAtMs: Number.NEGATIVE_INFINITY, id: 0 };

/** The index ranges that are left to read in a queue, in their order. */
function toRanges({ queue, passed, spanMs, after = START }: OverlookedLook): object[] {
  const ranges: object[] = [];
  for (let priority = after.priority; priority <= MAX_PRIORITY; priority++) {
    const range = passed[priority];
    if (range === undefined || range.endMs === Number.NEGATIVE_INFINITY) continue;
    const start = { ...START, runAtMs: spanMs === undefined ? START.runAtMs : range.floorMs - spanMs };
    const { runAtMs, id } = priority === after.priority && after.runAtMs > start.runAtMs ? after : start;
    ranges.push({
      queue,
      priority,
      after: toTimestamp(runAtMs),
      after_id: id,
      floor: toTimestamp(range.floorMs),
      end: toTimestamp(range.endMs),
    });
  }
  return ranges;
}

/** To the microsecond, as Postgres reads it. */
function toTimestamp(ms: number): string {
  const us = Math.round(ms * 1_000);
  const wholeMs = Math.floor(us / 1_000);
  return timestampText(wholeMs).replace('Z', `${String(us - wholeMs * 1_000).padStart(3, '0')}Z`);
}

function toPlace(row: RawRow): ClaimPlace {
  return { priority: Number(row.priority), runAtMs: Number(row.run_at), id: Number(row.id) };
}

export function inClaimOrder(a: ClaimPlace, b: ClaimPlace): number {
  return a.priority - b.priority || a.runAtMs - b.runAtMs || a.id - b.id;
}
