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
  /** The most groups to take them of. */
  readonly groups: number;
  readonly limits: ClaimLimits;
  /** The most of some kinds among them. */
  readonly rooms: ReadonlyMap<string, number>;
  /** How long after the claim jobs of groups with a rate may begin. `undefined`: it takes none of them. */
  readonly starts: StartTimes | undefined;
  /** Whether the jobs are returned with their costs. */
  readonly withCosts: boolean;
  /** How many of the first begin with the claim: see `claimJobs`. */
  readonly beginning: 0 | 1;
  readonly workerId: number;
  /** Leaves these jobs where they are: see `SetAside`. */
  readonly without: readonly number[];
  /**
   * Whether its first group is one of the ring, and not one that was idle. Where there is room for one job at
   * a time, and groups keep coming, claims that all begin with the same lane would starve the other.
   */
  readonly ringFirst: boolean;
  /**
   * Whether it passes groups of the ring that have nothing for it, and leaves them where they stand. Each of
   * them costs a look into its jobs, and all that it takes one more.
   */
  readonly seeks: boolean;
  /** How many groups of each lane it passes without a look, where it seeks. */
  readonly passed: number;
  /** Claims nothing unless the tables are so: see `claimGroupsByKeptPlan`. `undefined`: any size. */
  readonly ifTablesAre: TableSize | undefined;
}

/** What the text of such a claim depends on. */
export type GroupClaimShape = ReturnType<typeof groupShapeOf>;

export type GroupClaimPlace = Place<ReturnType<typeof groupValuesOf>>;

export function groupShapeOf({ limits, rooms, starts, without, withCosts, seeks, ifTablesAre }: GroupClaim) {
  return {
    /** Whether the jobs of a group run one after the other. */
    serial: limits.run !== undefined,
    /** Whether it takes jobs of groups with a rate. */
    rated: starts !== undefined,
    /** Whether there is room for so many jobs of some kinds only. */
    bounded: rooms.size > 0,
    /** Whether it leaves jobs out by their ids. */
    without: without.length > 0,
    withCosts,
    seeks,
    ifTablesAre,
  };
}

/** What such a claim fills in. */
export function groupValuesOf({ limits, starts, ...claim }: GroupClaim) {
  return {
    queue: claim.queue,
    kinds: JSON.stringify(claim.kinds),
    workerId: claim.workerId,
    limit: claim.limit,
    groups: claim.groups,
    concurrency: limits.concurrency ?? null,
    rateLimit: limits.rate?.limit ?? null,
    ratePerMs: limits.rate?.perMs ?? null,
    neededMs: starts?.neededMs ?? 0,
    stretch: starts?.stretch ?? 0,
    run: limits.run ?? null,
    rooms: JSON.stringify(Object.fromEntries(claim.rooms)),
    without: arrayText(claim.without),
    first: claim.beginning,
    /** By how many places the ring stands before the groups that were idle, or behind them. */
    ringLead: claim.ringFirst ? -1 : 1,
    passed: claim.passed,
  };
}
