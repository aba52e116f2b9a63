import type { ClaimedJob } from '../../../core/queries/claim/claim-jobs.ts';
import type { TableSize } from '../../../core/sql/table-size.ts';
import { FEW, type GroupClaimResult } from '../queries/claim-grouped-jobs.ts';

/** From so many jobs on, a claim says something about how many groups there are. */
export const MANY = 100;

/** A claim of jobs in groups that was carried out, in one statement or in two halves. */
export interface MadeClaim {
  /** How many jobs it asked for, in all and by each statement. */
  readonly demand: number;
  readonly shares: readonly number[];
  readonly answers: readonly GroupClaimResult[];
  readonly jobs: readonly ClaimedJob[];
  readonly hasFailed: boolean;
}

/** What the last claim of jobs in groups tells about the next one. */
export interface Outlook {
  /** It probably brings about as much. */
  readonly jobs: number;
  readonly groups: number;
  /** Its jobs are probably of many groups, and of others. */
  readonly isAmongMany: boolean;
  /** The last one left groups, though it brought fewer jobs than it asked for: there may be many. */
  readonly leftGroups: boolean;
  /** Of some of these it could take nothing: the next one passes such groups. */
  readonly seeks: boolean;
  /** The last one was small, and may have left notes. */
  readonly wasCrowded: boolean;
  /** Whether all notes are folded in before it. */
  readonly foldsFirst: boolean;
}

/** Before the first claim. */
export const NOTHING_KNOWN: Outlook = {
  jobs: 0,
  groups: 0,
  isAmongMany: false,
  leftGroups: false,
  seeks: false,
  wasCrowded: false,
  foldsFirst: false,
};

/** What the next claim may expect after this one. */
export function outlookAfter(claim: MadeClaim, before: Outlook): Outlook {
  const { demand, shares, answers, jobs, hasFailed } = claim;
  const groups = new Set(jobs.map(({ group }) => group)).size;
  const isLarge = shares.every((limit) => limit >= MANY);
  const isCrowded = answers.some(({ crowded }) => crowded);
  // Notes that claims use for little, or in part only, would keep those waiting that come after them.
  const usesNotes = isLarge ? answers.every(({ usedMany }) => usedMany) : !before.wasCrowded;
  return {
    jobs: jobs.length,
    groups,
    isAmongMany: !hasFailed && jobs.length >= MANY && groups > jobs.length / 2,
    leftGroups: answers.some(({ more }) => more) && jobs.length < demand,
    seeks: answers.some(({ passed }) => passed) && jobs.length < demand,
    wasCrowded: isCrowded && !isLarge,
    foldsFirst: isCrowded && (!usesNotes || answers.some(({ repeated }) => repeated)),
  };
}

/** Whether the next claim is one of those whose plan is kept for tables of this size. */
export function isOfFew({ jobs, groups, leftGroups }: Outlook, size: TableSize | undefined): boolean {
  if (size === undefined || leftGroups) return false;
  return size === 'small' ? jobs < FEW.small : groups < FEW.grown;
}
