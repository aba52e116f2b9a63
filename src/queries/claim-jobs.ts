import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Beginners, claimedAt, isLate, wordsOf } from '../sql/claim-beginning.ts';
import { type Band, inClaimOrder, isWhole } from '../sql/claim-order.ts';
import { type ClaimedJob, claimedColumns, claimedRows, toClaimedJobs } from '../sql/claimed-job.ts';
import { queryRows, type Runner } from '../sql/executor.ts';
import { faultPoint } from '../sql/fault-point.ts';
import { arrayText } from '../sql/fence.ts';
import { endHolds } from '../sql/hold-end.ts';
import { planAnew } from '../sql/plan-anew.ts';
import { servedKind } from '../sql/served-kind.ts';
import { isSmall, tableSize } from '../sql/small-table.ts';

/** A claim stops at the job that takes it above this: 500 payloads of a megabyte would exhaust memory. */
const MAX_CLAIM_BYTES = 8 * 1024 * 1024;

export type { Band } from '../sql/claim-order.ts';
export type { ClaimedJob } from '../sql/claimed-job.ts';

export interface Claim {
  readonly queue: string;
  readonly kinds: readonly string[];
  /** In the order in which their jobs are claimed; those of one priority by time, with no job in common. */
  readonly bands: readonly Band[];
  /** Instead of the bands: those of these jobs that can be claimed, in no order; no more than the limit. */
  readonly ids?: readonly number[] | undefined;
  /** The most jobs to claim; fewer when their payloads are large. */
  readonly limit: number;
  /**
   * Which jobs begin with the claim: so many of the first, or {@link Beginners}. Others on their last
   * attempt, or whose previous one left no error, are claimed without beginning: a crash does not spend it.
   * @default undefined all of them begin
   */
  readonly beginning?: 0 | 1 | Beginners | undefined;
  /** Who will hold them; `null` where the lock of the row is the hold, as in `runNext`. */
  readonly workerId: number | null;
  /** Also takes jobs whose holder is no longer in `queue_workers`. */
  readonly fromGoneWorkers: boolean;
  /** Claims nothing while the queue is paused. Workers learn of pauses beside their claims. @default false */
  readonly heedPauses?: boolean | undefined;
  /** Claims nothing unless the table is small: see {@link claimFromSmallTable}. @default false */
  readonly onlyIfSmall?: boolean | undefined;
}

/**
 * Takes up to `limit` due jobs of one queue, in the order of the bands, `run_at`, id; fewer when their
 * payloads exceed 8 MB, but at least one if any is due. Returns them in that order, or in that of `ids`.
 *
 * **Under concurrency.** No job is given to two claims: a row that another claim has locked is skipped, and a
 * row that it has claimed no longer matches, whatever the bands of the two. No claim waits for another, and
 * none takes more than `limit`. Each claim raises the job's fence, so every earlier holder's writes about it
 * match nothing from here on.
 *
 * Why each part is so:
 * - One exact index range per band (`lateral`): jobs scheduled for tomorrow cost nothing, and the planner
 *   keeps to the index even on a table it knows nothing about yet.
 * - `limit (select …)` hides the number from the planner. Seeing one above the rows it expected
 *   (0.5 % of the band), it sorted a bitmap of the whole band: 27 ms instead of 3.5 for 200 jobs of 30,000.
 * - A CTE and `= any(array(…))`: with `in (select … limit 1 for update skip locked)` and stale statistics the
 *   planner may run the subselect once per row, and 200 rows were updated where 1 was asked for.
 * - `group_key is null` is the predicate of the claim's index: see `defineJobsTable`.
 * - `statement_timestamp()` is stable, so it bounds the index scan; `clock_timestamp()` would only filter.
 * - `for no key update` neither blocks inserts that refer to the job by foreign key nor makes multixacts.
 */
export async function claimJobs(db: Runner, tables: QueueTables, claim: Claim): Promise<ClaimedJob[]> {
  const rows = await queryRows(db, tables, claimJobsQuery(tables, claim));
  await faultPoint('claim: answered');
  // The rows of an update come in no order.
  return toClaimedJobs(tables.queueJobs, inClaimOrder(rows, claim), claim.queue);
}

/**
 * The same by a prepared statement that Postgres plans once, which takes a small claim less than half of the
 * time. Its plan may be for an empty table, and read all of it once for each band.
 *
 * @returns `undefined` where the table is too large for that: then it has claimed nothing
 */
export async function claimFromSmallTable(
  db: Runner,
  tables: QueueTables,
  claim: Omit<Claim, 'ids'>,
): Promise<ClaimedJob[] | undefined> {
  const rows = await queryRows(db, tables, claimJobsQuery(tables, { ...claim, onlyIfSmall: true }));
  await faultPoint('claim: answered');
  if (rows[0]?.small !== true) return undefined;
  // Without a job there is one row that says so.
  const found = rows.filter(({ id }) => id !== null);
  return toClaimedJobs(tables.queueJobs, inClaimOrder(found, claim), claim.queue);
}

/** Whether a claim saw the end of what is due: neither its limit nor the payloads' size stopped it. */
export function sawTheEnd(limit: number, jobs: readonly ClaimedJob[]): boolean {
  if (jobs.length >= limit) return false;
  return jobs.reduce((bytes, { payloadBytes }) => bytes + payloadBytes, 0) < MAX_CLAIM_BYTES;
}

export function claimJobsQuery(tables: QueueTables, claim: Claim): SQL {
  const { queueJobs, queueWorkers, queuePauses } = tables;
  const held = claim.fromGoneWorkers
    ? // Never its own: a worker that was declared gone by mistake still runs what it holds.
      sql`(j.worker_id is null or (j.worker_id is distinct from ${claim.workerId}::int8
            and j.worker_id not in (select w.id from ${queueWorkers} as w)))`
    : sql`j.worker_id is null`;
  const unlessPaused = claim.heedPauses
    ? sql`
          and not exists (select from ${queuePauses} as p where p.queue = ${claim.queue})`
    : sql``;
  const due = sql`${held}${unlessPaused}
          and ${servedKind(claim.kinds)}`;
  const attempt = claim.fromGoneWorkers
    ? sql`j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4`
    : sql`j.attempt + 1`;
  const beginners = typeof claim.beginning === 'object' ? claim.beginning : undefined;
  const words = beginners && wordsOf(attempt, claim.kinds, beginners);
  const columns = sql`j.id, pg_column_size(j.payload) as bytes${words ? sql`, ${words}` : sql``}`;
  const from =
    claim.ids === undefined
      ? inBands(queueJobs, claim, columns, due)
      : among(queueJobs, claim, claim.ids, columns, due);
  const before = sql`(rows between unbounded preceding and 1 preceding)`;
  const late = beginners && isLate(beginners, before);
  const small = claim.onlyIfSmall ? sql` and ${isSmall}` : sql``;
  const ctes = sql`
    with ${claim.onlyIfSmall ? tableSize(queueJobs) : sql``}due as (
      select j.id, j.bytes${words ? sql`, j.last, j.silent, j.proven` : sql``}
      from ${from}
      limit ${claim.limit}
    ),
    within as (
      select id${late ? sql`, late` : sql``} from (
        select id, sum(bytes) over ${before} as before${late ? sql`, ${late}` : sql``} from due
      ) as d
      where before is null or before < ${MAX_CLAIM_BYTES}::int8
    )`;
  return endHolds(tables, {
    queue: claim.queue,
    ctes,
    // It may end the hold of a worker that is gone.
    change: {
      holder: sql`${claim.workerId}::int8`,
      claimedAt: claimedAt(attempt, claim.beginning),
      // A key that holds until the first claim; where it is null already, the update stays HOT.
      set: sql`attempt = ${attempt}, fence = j.fence + 1, waiting_key = null`,
    },
    where: sql`j.queue = ${claim.queue} and j.id = any(array(select id from within))${small}`,
    returning: claimedColumns(queueJobs),
    answer: { name: 'claimed', select: claimedRows(queueJobs, claim.onlyIfSmall) },
  });
}

/** The due jobs in the bands, as `j`: one exact index range per band. */
function inBands(
  queueJobs: QueueTables['queueJobs'],
  { queue, bands, limit, onlyIfSmall }: Claim,
  columns: SQL,
  due: SQL,
): SQL {
  const split = !bands.every(isWhole);
  const rows = bands.map((band) => (split ? toSplitBandRow(band) : toBandRow(band)));
  const planned = onlyIfSmall ? sql`` : sql`${planAnew()} cross join `;
  return sql`${planned}jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
        as band(priority int2, floor timestamptz${split ? sql`, ceiling timestamptz` : sql``})
      cross join lateral (
        select ${columns} from ${queueJobs} as j
        where j.queue = ${queue} and j.priority = band.priority and j.group_key is null
          and j.run_at >= band.floor and j.run_at <= statement_timestamp()${
            split
              ? sql`
          and j.run_at < band.ceiling`
              : sql``
          }
          and ${due}${
            onlyIfSmall
              ? sql`
          and ${isSmall}`
              : sql``
          }
        order by j.run_at, j.id limit (select ${limit}::int8)
        for no key update skip locked
      ) as j`;
}

/** The due jobs among those that are named, as `j`, by the primary key. */
function among(
  queueJobs: QueueTables['queueJobs'],
  { queue }: Claim,
  ids: readonly number[],
  columns: SQL,
  due: SQL,
): SQL {
  return sql`${planAnew()} cross join lateral (
        select ${columns} from ${queueJobs} as j
        where j.queue = ${queue} and j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))
          and j.run_at <= statement_timestamp()
          and ${due}
        for no key update skip locked
      ) as j`;
}

function toBandRow({ priority, floorMs }: Band): { priority: number; floor: string } {
  return { priority, floor: Number.isFinite(floorMs) ? new Date(floorMs).toISOString() : '-infinity' };
}

function toSplitBandRow(band: Band): object {
  const { ceilingMs } = band;
  return {
    ...toBandRow(band),
    ceiling: ceilingMs === undefined ? 'infinity' : new Date(ceilingMs).toISOString(),
  };
}
