import type { LimitSettings } from '../settings/limit-settings.ts';

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
  readonly limits: ClaimLimits;
  /** The most of some kinds among them. @default none */
  readonly rooms?: ReadonlyMap<string, number> | undefined;
  /** Whether the jobs are returned with their costs. @default false */
  readonly withCosts?: boolean | undefined;
  /** How many of the first begin with the claim: see `claimJobs`. @default undefined all of them */
  readonly beginning?: 0 | 1 | undefined;
  readonly workerId: number;
  /** Leaves these jobs where they are: see `SetAside`. @default undefined none */
  readonly without?: readonly number[] | undefined;
  /** Whether it also looks at groups that no claim has met: see `queue_notes`. */
  readonly newGroups: boolean;
  /**
   * Whether its first group is one of the ring, and not one that was idle. Where there is room for one job at
   * a time, and groups keep coming, claims that all begin with the same lane would starve the other.
   * @default false
   */
  readonly ringFirst?: boolean | undefined;
}
