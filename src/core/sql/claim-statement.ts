import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Beginners, beginsLater, claimedAt, NEXT_ATTEMPT, risksOf } from './claim-beginning.ts';
import { type Band, isWhole } from './claim-order.ts';
import { claimedColumns, claimedRows } from './claimed-job.ts';
import { arrayText } from './fence.ts';
import { handOver } from './hold-end.ts';
import type { Place } from './kept-statement.ts';
import { payloadBytes } from './payload-bytes.ts';
import { planAnew } from './plan-anew.ts';
import { isNotAmong, servedKindOf } from './served-kind.ts';
import { isOf, type TableSize, tableSize } from './table-size.ts';
import { throughIndex } from './through-index.ts';
import { timestampText } from './timestamp-text.ts';

/** A claim stops at the job that takes it above this: 500 payloads of a megabyte would exhaust memory. */
export const MAX_CLAIM_BYTES = 8 * 1024 * 1024;

export interface Claim {
  readonly queue: string;
  readonly kinds: readonly string[];
  /** In the order in which their jobs are claimed; those of one priority by time, with no job in common. */
  readonly bands: readonly Band[];
  /** Instead of the bands: those of these jobs that can be claimed, in no order; no more than the limit. */
  readonly ids?: readonly number[] | undefined;
  /** Leaves these jobs where they are: see `SetAside`. @default undefined none */
  readonly without?: readonly number[] | undefined;
  /** The most jobs to claim; fewer when their payloads are large. */
  readonly limit: number;
  /**
   * Which jobs begin with the claim: this many of the first, or {@link Beginners}. Others on their last
   * attempt, or whose previous one left no error, are claimed without beginning: a crash does not spend it.
   * @default undefined all of them begin
   */
  readonly beginning?: 0 | 1 | Beginners | undefined;
  /** The worker that will hold them; `null` where the lock of the row is the hold, as in `runNext`. */
  readonly workerId: number | null;
  /** Also takes jobs whose holder is no longer in `queue_workers`. */
  readonly fromGoneWorkers: boolean;
  /** Claims nothing while the queue is paused. Workers learn of pauses beside their claims. @default false */
  readonly heedPauses?: boolean | undefined;
  /** Whether the jobs are returned with their costs. @default false */
  readonly withCosts?: boolean | undefined;
  /** Claims nothing unless the table is of this size: see `claimByKeptPlan`. @default undefined any */
  readonly ifTableIs?: TableSize | undefined;
}

/** What the text of a claim depends on. */
export interface ClaimShape {
  readonly among: boolean;
  /** Whether it leaves jobs out by their ids. */
  readonly without: boolean;
  /** Whether a band ends somewhere. */
  readonly split: boolean;
  readonly beginning: 'all' | 'first' | 'unless later';
  /** Whether all kinds are proven: then the SQL does not test each job's kind. */
  readonly proven: boolean;
  readonly fromGoneWorkers: boolean;
  readonly heedPauses: boolean;
  readonly ifTableIs: TableSize | undefined;
  readonly withCosts: boolean;
}

/** What a claim fills in. */
export interface ClaimValues {
  readonly queue: string;
  /** A JSON array, like `provenKinds`. */
  readonly kinds: string;
  readonly workerId: number | null;
  readonly limit: number;
  /** The bands, or the ids. */
  readonly places: string;
  readonly without: string;
  readonly first: 0 | 1;
  readonly atMost: number;
  readonly provenKinds: string;
}

type ClaimPlace = Place<ClaimValues>;

export function shapeOf(claim: Claim): ClaimShape {
  const { kinds, bands, ids, without, beginning, fromGoneWorkers } = claim;
  const { heedPauses = false, ifTableIs, withCosts = false } = claim;
  const many = typeof beginning === 'object' ? beginning : undefined;
  return {
    among: ids !== undefined,
    without: without !== undefined && without.length > 0,
    split: ids === undefined && !bands.every(isWhole),
    beginning: many ? 'unless later' : beginning === undefined ? 'all' : 'first',
    proven: many !== undefined && kinds.every((kind) => many.provenKinds.includes(kind)),
    fromGoneWorkers,
    heedPauses,
    ifTableIs,
    withCosts,
  };
}

export function valuesOf(
  { queue, kinds, workerId, limit, bands, ids, without = [], beginning }: Claim,
  { split }: ClaimShape,
): ClaimValues {
  const many = typeof beginning === 'object' ? beginning : undefined;
  const rows = () => JSON.stringify(bands.map((band) => (split ? toSplitBandRow(band) : toBandRow(band))));
  return {
    queue,
    kinds: JSON.stringify(kinds),
    workerId,
    limit,
    places: ids === undefined ? rows() : arrayText(ids),
    without: arrayText(without),
    first: beginning === 1 ? 1 : 0,
    atMost: many?.atMost ?? 0,
    provenKinds: JSON.stringify(many?.provenKinds ?? []),
  };
}

/** See `claimJobs`. */
export function claimStatement(tables: QueueTables, shape: ClaimShape, place: ClaimPlace): SQL {
  const { queueJobs, queueWorkers, queuePauses } = tables;
  const { among, without, beginning, proven, fromGoneWorkers, heedPauses, ifTableIs, withCosts } = shape;
  const workerId = place('workerId');
  const held = fromGoneWorkers
    ? // Never its own: a worker that was declared gone by mistake still runs what it holds.
      sql`(j.worker_id is null or (j.worker_id is distinct from ${workerId}::int8
            and j.worker_id not in (select w.id from ${queueWorkers} as w)))`
    : sql`j.worker_id is null`;
  const unlessPaused = heedPauses
    ? sql`
          and not exists (select from ${queuePauses} as p where p.queue = ${place('queue')})`
    : sql``;
  const due = sql`${held}${unlessPaused}
          and ${servedKindOf(place('kinds'))}${
            without
              ? sql`
          and ${isNotAmong(place('without'))}`
              : sql``
          }`;
  const attempt = fromGoneWorkers ? NEXT_ATTEMPT : sql`j.attempt + 1`;
  const weighs = beginning === 'unless later';
  const risks = risksOf(attempt, proven ? sql`true` : servedKindOf(place('provenKinds')));
  const columns = sql`j.id, ${payloadBytes} as bytes${weighs ? sql`, ${risks}` : sql``}`;
  const from = among
    ? amongIds(queueJobs, columns, due, place)
    : inBands(queueJobs, shape, columns, due, place);
  // With the number, Postgres would rather plan a large claim anew than keep a plan for any number.
  const hidden = sql`(select ${place('limit')}::int8)`;
  const before = sql`(rows between unbounded preceding and 1 preceding)`;
  const later = beginsLater(place('atMost'), before);
  return handOver(tables, {
    ctes: sql`
    with ${
      ifTableIs
        ? sql`${tableSize(queueJobs, ifTableIs)},
    `
        : sql``
    }due as (
      select j.id, j.bytes${weighs ? sql`, j.last, j.silent, j.proven` : sql``}
      from ${from}
      limit ${ifTableIs ? hidden : place('limit')}
    ),
    within as (
      select id${weighs ? sql`, later` : sql``} from (
        select id, sum(bytes) over ${before} as before${weighs ? sql`, ${later}` : sql``} from due
      ) as d
      where before is null or before < ${MAX_CLAIM_BYTES}::int8
    )`,
    // It may end the hold of a worker that is gone.
    holder: sql`${workerId}::int8`,
    claimedAt: claimedAt(attempt, beginning === 'first' ? { first: place('first') } : beginning),
    // A key that holds until the first claim; where it is null already, the update stays HOT.
    set: sql`attempt = ${attempt}, fence = j.fence + 1, waiting_key = null`,
    where: sql`j.queue = ${place('queue')} and j.id = any(array(select id from within))${
      ifTableIs ? sql` and ${isOf(ifTableIs)}` : sql``
    }`,
    returning: claimedColumns(tables, withCosts),
    answer: {
      name: 'claimed',
      select: claimedRows(tables, { withSize: ifTableIs, withCosts, withSample: heedPauses }),
    },
  });
}

/** The due jobs in the bands, as `j`: one exact index range per band. */
function inBands(
  queueJobs: QueueTables['queueJobs'],
  { split, ifTableIs }: ClaimShape,
  columns: SQL,
  due: SQL,
  place: ClaimPlace,
): SQL {
  const planned = ifTableIs ? sql`` : sql`${planAnew()} cross join `;
  return sql`${planned}jsonb_to_recordset(${place('places')}::text::jsonb)
        as band(priority int2, floor timestamptz${split ? sql`, ceiling timestamptz` : sql``})
      cross join lateral (
        select ${columns} from ${queueJobs} as j
        where j.queue = ${place('queue')} and j.priority = band.priority
          and ${throughIndex(sql`j.group_key is null`)}
          and j.run_at >= band.floor and j.run_at <= statement_timestamp()${
            split
              ? sql`
          and j.run_at < band.ceiling`
              : sql``
          }
          and ${due}${
            ifTableIs
              ? sql`
          and ${isOf(ifTableIs)}`
              : sql``
          }
        order by j.run_at, j.id limit (select ${place('limit')}::int8)
        for no key update skip locked
      ) as j`;
}

/** The due jobs among those that are named, as `j`, by the primary key. */
function amongIds(queueJobs: QueueTables['queueJobs'], columns: SQL, due: SQL, place: ClaimPlace): SQL {
  const ids = sql`${place('places')}::text::int8[]`;
  return sql`${planAnew()} cross join lateral (
        select ${columns} from ${queueJobs} as j
        where j.queue = ${place('queue')} and j.id = any(array(select unnest(${ids})))
          and j.run_at <= statement_timestamp()
          and ${due}
        for no key update skip locked
      ) as j`;
}

function toBandRow({ priority, floorMs }: Band): { priority: number; floor: string } {
  return { priority, floor: timestampText(floorMs) };
}

function toSplitBandRow(band: Band): object {
  const { ceilingMs } = band;
  return {
    ...toBandRow(band),
    ceiling: ceilingMs === undefined ? 'infinity' : timestampText(ceilingMs),
  };
}
