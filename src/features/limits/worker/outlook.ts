import type { ClaimedJob } from '../../../core/queries/claim/claim-jobs.ts';
import type { TableSize } from '../../../core/sql/table-size.ts';
import { FEW, type GroupClaimResult, type Sign } from '../queries/claim-grouped-jobs.ts';

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

/** What a claim of jobs in groups tells about the next one. */
export type Outlook = ReturnType<typeof outlookAfter>;

/** @param wasCrowded as it was in the outlook before */
export function outlookAfter({ demand, shares, answers, jobs, hasFailed }: MadeClaim, wasCrowded: boolean) {
  const tell = (sign: Sign) => answers.some(({ signs }) => signs.has(sign));
  const groups = new Set(jobs.map(({ group }) => group)).size;
  const isLarge = shares.every((limit) => limit >= MANY);
  const isCrowded = tell('crowded');
  // Notes that claims use for little, or in part only, would keep those waiting that come after them.
  const usesNotes = isLarge ? answers.every(({ signs }) => signs.has('usedMany')) : !wasCrowded;
  return {
    /** It probably brings about as much. */
    jobs: jobs.length,
    groups,
    /** Its jobs are probably of many groups, and of others. */
    isAmongMany: !hasFailed && jobs.length >= MANY && groups > jobs.length / 2,
    /** The last one left groups, though it brought fewer jobs than it asked for: there may be many. */
    leftGroups: tell('more') && jobs.length < demand,
    /** Of some of these it could take nothing: the next one passes such groups, or goes on behind them. */
    seeks: (tell('passed') || tell('unsought')) && jobs.length < demand,
    /** The last one was small, and may have left notes. */
    wasCrowded: isCrowded && !isLarge,
    /** Whether all notes are folded in before it. */
    foldsFirst: isCrowded && (!usesNotes || tell('repeated')),
  };
}

/** Before the first claim. */
export const NOTHING_KNOWN: Outlook = outlookAfter(
  { demand: 0, shares: [], answers: [], jobs: [], hasFailed: false },
  false,
);

/** Whether the next claim is one of those whose plan is kept for tables of this size. */
export function isOfFew({ jobs, groups, leftGroups }: Outlook, size: TableSize | undefined): boolean {
  if (size === undefined || leftGroups) return false;
  return size === 'small' ? jobs < FEW.small : groups < FEW.grown;
}
