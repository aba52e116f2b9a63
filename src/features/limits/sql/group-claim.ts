import { arrayText } from '../../../core/sql/fence.ts';
import type { Place } from '../../../core/sql/kept-statement.ts';
import type { TableSize } from '../../../core/sql/table-size.ts';
import type { LimitSettings } from '../settings/limit-settings.ts';
import type { StartTimes } from './start-time.ts';

/** The limits of a queue's groups, as the code declares them. */
export interface ClaimLimits extends LimitSettings {
  /** Where the jobs of a group run one after the other: the most of one group that a claim takes. */
  readonly run: number | undefined;
}

export interface GroupClaim {
  readonly queue: string;
  readonly kinds: readonly string[];
  /** The most jobs to claim; fewer when their payloads are large. */
  readonly limit: number;
  /** The most groups to take them of. @default limit */
  readonly groups?: number | undefined;
  readonly limits: ClaimLimits;
  /** The most of some kinds among them. @default none */
  readonly rooms?: ReadonlyMap<string, number> | undefined;
  /**
   * How long after the claim jobs of groups with a rate may begin. Without it, it takes none of such groups.
   * @default undefined
   */
  readonly starts?: StartTimes | undefined;
  /** Whether the jobs are returned with their costs. @default false */
  readonly withCosts?: boolean | undefined;
  /** How many of the first begin with the claim: see `claimJobs`. */
  readonly beginning: 0 | 1;
  readonly workerId: number;
  /** Leaves these jobs where they are: see `SetAside`. @default undefined none */
  readonly without?: readonly number[] | undefined;
  /**
   * Whether its first group is one of the ring, and not one that was idle. Where there is room for one job at
   * a time, and groups keep coming, claims that all begin with the same lane would starve the other.
   * @default false
   */
  readonly ringFirst?: boolean | undefined;
  /**
   * Whether it passes groups of the ring that have nothing for it, and leaves them where they stand. Each of
   * them costs a look into its jobs, and all that it takes one more.
   * @default false
   */
  readonly seeks?: boolean | undefined;
  /** How many groups of each lane it passes without a look, where it seeks. @default 0 */
  readonly passed?: number | undefined;
  /** Claims nothing unless the tables are so: see `claimGroupsByKeptPlan`. @default undefined any size */
  readonly ifTablesAre?: TableSize | undefined;
}

/** What the text of such a claim depends on. */
export type GroupClaimShape = ReturnType<typeof groupShapeOf>;

export type GroupClaimPlace = Place<ReturnType<typeof groupValuesOf>>;

export function groupShapeOf({
  limits,
  rooms,
  starts,
  without,
  withCosts = false,
  seeks = false,
  ifTablesAre,
}: GroupClaim) {
  return {
    /** Whether the jobs of a group run one after the other. */
    serial: limits.run !== undefined,
    /** Whether it takes jobs of groups with a rate. */
    rated: starts !== undefined,
    /** Whether there is room for so many jobs of some kinds only. */
    bounded: rooms !== undefined && rooms.size > 0,
    /** Whether it leaves jobs out by their ids. */
    without: without !== undefined && without.length > 0,
    withCosts,
    seeks,
    ifTablesAre,
  };
}

/** What such a claim fills in. */
export function groupValuesOf(claim: GroupClaim) {
  const {
    queue,
    kinds,
    workerId,
    limit,
    groups = limit,
    limits,
    rooms = [],
    without = [],
    beginning,
    ringFirst,
    passed = 0,
  } = claim;
  const { neededMs = 0, stretch = 0 } = claim.starts ?? {};
  return {
    queue,
    kinds: JSON.stringify(kinds),
    workerId,
    limit,
    groups,
    concurrency: limits.concurrency ?? null,
    rateLimit: limits.rate?.limit ?? null,
    ratePerMs: limits.rate?.perMs ?? null,
    neededMs,
    stretch,
    run: limits.run ?? null,
    rooms: JSON.stringify(Object.fromEntries(rooms)),
    without: arrayText(without),
    first: beginning,
    /** By how many places the ring stands before the groups that were idle, or behind them. */
    ringLead: ringFirst === true ? -1 : 1,
    passed,
  };
}
