import type { Claim, ClaimedJob } from '../../../core/queries/claim/claim-jobs.ts';
import type { TableSize } from '../../../core/sql/table-size.ts';
import type { GroupClaims, GroupClaimsOptions } from '../../../core/worker/claim/claim-groups.ts';
import type { ClaimAnswer } from '../../../core/worker/claim/claims.ts';
import { KeptPlans } from '../../../core/worker/statements/kept-plans.ts';
import { admitGroups, MAX_NOTES } from '../queries/admit-groups.ts';
import {
  claimByKeptPlan,
  claimGroupedJobs,
  FEW,
  type GroupClaimResult,
} from '../queries/claim-grouped-jobs.ts';
import { findGroupedDueIds } from '../queries/find-grouped-due-ids.ts';
import { noteFreedGroups } from '../queries/note-groups.ts';
import type { LimitSettings } from '../settings/limit-settings.ts';
import type { GroupClaim } from '../sql/group-claim.ts';
import type { GroupTables } from '../sql/limit-tables.ts';
import { GroupStarts } from './group-starts.ts';

export interface ClaimsByTurnsOptions extends GroupClaimsOptions {
  readonly groups: LimitSettings & {
    readonly tables: GroupTables;
    /** Whether only so many jobs of a group may be held at once, by what the code declares. */
    readonly bounds: boolean;
  };
}

/** From so many jobs on, a claim says something about how many groups there are. */
const MANY = 100;
/** The most statements that fold in notes before one claim. */
const MAX_ADMISSIONS = 10;

/**
 * The claims of a queue whose jobs are in groups. A claim uses notes itself, but reads only the first ones.
 * Where these were of little use and more are left, all notes are folded in before the next claim. Otherwise
 * a group whose jobs are enqueued one by one, with a note each, would keep the others waiting. A large claim
 * of many groups is made in two halves beside each other, as two workers would: with one after the other the
 * server often waits.
 */
export class ClaimsByTurns implements GroupClaims {
  readonly #options: ClaimsByTurnsOptions;
  #seekFreed = true;
  #leftOut: readonly string[] = [];
  /** The last claim brought jobs of so many groups that those of the next one are probably others. */
  #amongMany = false;
  /** What the last claim brought: the next one probably brings about as much. */
  #last = { jobs: 0, groups: 0 };
  /** The last claim left groups, though it brought fewer jobs than it asked for: there may be many. */
  #passedOver = false;
  readonly #keptPlans: KeptPlans;
  /** Which of the two lanes of groups the last claim began with: they take turns. */
  #ringFirst = false;
  /** Whether all notes are folded in before the next claim. */
  #foldsFirst = false;
  /** The last claim was a small one, and may have left notes. */
  #wasCrowded = false;
  /** A claim has met a group of which only so many jobs may be held: that may be set at run time. */
  #metBounds = false;
  readonly #starts: GroupStarts;

  constructor(options: ClaimsByTurnsOptions) {
    this.#options = options;
    this.#keptPlans = new KeptPlans({ runner: options.runner, tables: options.groups.tables });
    this.#starts = new GroupStarts(options.groups.rate !== undefined);
  }

  get awaitsEnds(): boolean {
    return this.#options.groups.bounds || this.#metBounds;
  }

  get demand(): number {
    return this.#options.attempts().demand;
  }

  get hasNewRoom(): boolean {
    return this.#leftOut.some((kind) => this.#roomOf(kind) > 0);
  }

  /**
   * Workers are gone, or were gone before this one began. Nothing else tells claims about the jobs they held.
   */
  seekFreed(): void {
    this.#seekFreed = true;
  }

  /** They come in no order of their own, so none is known to stand before the others. */
  async next(demand: number, beginning: Claim['beginning']): Promise<ClaimAnswer> {
    const { runner, queue, kinds, groups, tries } = this.#options;
    const { size } = this.#keptPlans;
    const few = this.#isOfFew(size);
    const most = few && size === 'small' ? Math.min(demand, FEW.small) : demand;
    if (tries === undefined) return await this.#next(most, few, beginning);
    const without = () => tries.setAside.ids;
    return await tries.send({
      limit: most,
      send: (limit) => this.#next(limit, few, beginning),
      candidates: (limit) =>
        findGroupedDueIds(runner, groups.tables, { queue, kinds, limit, without: without() }),
    });
  }

  async #next(demand: number, few: boolean, beginning: Claim['beginning']): Promise<ClaimAnswer> {
    const { queue, workerId, groups, attempts } = this.#options;
    const { concurrency, rate } = groups;
    await this.#noteFreed();
    const kinds = this.#options.kinds.filter((kind) => this.#roomOf(kind) > 0);
    this.#leftOut = this.#options.kinds.filter((kind) => !kinds.includes(kind));
    const rooms = new Map(
      kinds.map((kind) => [kind, this.#roomOf(kind)] as const).filter(([, room]) => room < demand),
    );
    const leftOut = this.#leftOut.length > 0;
    if (this.#foldsFirst && kinds.length > 0) await this.#admitAll();
    const inHalves = this.#amongMany && demand >= 2 * MANY && rooms.size === 0;
    this.#amongMany = false;
    // The worker may have been stopped, or the queue paused, while the notes were folded in.
    if (kinds.length === 0 || attempts().demand <= 0) {
      return {
        jobs: [],
        limit: demand,
        kinds,
        among: false,
        sawEnd: false,
        leftOut: true,
        endMs: performance.now(),
      };
    }
    const claim = {
      queue,
      kinds,
      workerId,
      limits: { concurrency, rate, run: attempts().mostPerGroup },
      rooms,
      withCosts: this.#options.gate?.countsCosts,
      without: this.#options.tries?.setAside.ids,
    };
    // Of two claims each would take what there is room for.
    const shares = inHalves ? halves(demand) : [demand];
    // Of two first jobs one waits behind many others: a crash must not spend its attempt.
    const begins = beginning === 1 && shares.length === 1 ? 1 : 0;
    const claims = shares.map((limit) => {
      this.#ringFirst = !this.#ringFirst;
      return this.#claim({ ...claim, limit, beginning: begins, ringFirst: this.#ringFirst }, few);
    });
    const outcomes = await Promise.allSettled(claims);
    const answers = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    const jobs = inTheirOrder(answers);
    // One that fails takes nothing from the other, whose jobs are known to be held.
    const failure: unknown = outcomes.find((outcome) => outcome.status === 'rejected')?.reason;
    const more = answers.some(({ more }) => more);
    const left = answers.some(({ left }) => left);
    this.#metBounds ||= answers.some(({ bounded }) => bounded);
    // What it has left for its rate, the next one takes.
    const metRate = !this.#starts.areKnown && answers.some(({ rated }) => rated);
    this.#starts.areKnown ||= metRate;
    if (failure !== undefined && jobs.length === 0) throw failure;
    const isLarge = shares.every((limit) => limit >= MANY);
    const crowded = answers.some(({ crowded }) => crowded);
    const helps = isLarge ? answers.every(({ usedMany }) => usedMany) : !this.#wasCrowded;
    this.#foldsFirst = crowded && (!helps || answers.some(({ repeated }) => repeated));
    this.#wasCrowded = crowded && !isLarge;
    this.#last = { jobs: jobs.length, groups: new Set(jobs.map(({ group }) => group)).size };
    this.#passedOver = more && jobs.length < demand;
    // The next ones are probably of others.
    this.#amongMany = failure === undefined && jobs.length >= MANY && this.#last.groups > jobs.length / 2;
    const isBehind = left && answers.some(({ used }) => used);
    // One of few groups may have met only those of which it could take nothing.
    const goesOn = (more && (jobs.length > 0 || few)) || metRate || isBehind;
    const sawEnd = jobs.length < demand && !more && !left && failure === undefined;
    const endMs = performance.now();
    return { jobs, limit: demand, kinds, among: false, sawEnd, leftOut, endMs, goesOn, failure };
  }

  /** Whether the next claim is one of those whose plan is kept for tables of this size. */
  #isOfFew(size: TableSize | undefined): boolean {
    if (size === undefined || this.#passedOver) return false;
    return size === 'small' ? this.#last.jobs < FEW.small : this.#last.groups < FEW.grown;
  }

  async #claim(claim: GroupClaim, few: boolean): Promise<GroupClaimResult> {
    const starts = this.#starts.ofClaim();
    const answer = await this.#send({ ...claim, starts }, few);
    if (starts !== undefined) this.#starts.noteAnswer(starts);
    return answer;
  }

  async #send(claim: GroupClaim, few: boolean): Promise<GroupClaimResult> {
    const { runner, groups } = this.#options;
    for (let { size } = this.#keptPlans; few && size !== undefined; { size } = this.#keptPlans) {
      const answer = await claimByKeptPlan(runner, groups.tables, claim, size);
      if ('jobs' in answer) return answer;
      this.#keptPlans.noteOther(size, answer.hasShrunk);
    }
    return await claimGroupedJobs(runner, groups.tables, claim);
  }

  async #admitAll(): Promise<void> {
    const { runner, queue, groups } = this.#options;
    let sent = 0;
    while (sent++ < MAX_ADMISSIONS && (await admitGroups(runner, groups.tables, queue)) >= MAX_NOTES);
  }

  /** How many jobs of one kind may be claimed. */
  #roomOf(kind: string): number {
    const { gate, attempts } = this.#options;
    return gate?.kinds.has(kind) ? attempts().demandOf(kind) : Number.POSITIVE_INFINITY;
  }

  async #noteFreed(): Promise<void> {
    if (!this.#seekFreed) return;
    const { runner, queue, groups } = this.#options;
    this.#seekFreed = false;
    await noteFreedGroups(runner, groups.tables, queue).catch((error: unknown) => {
      this.#seekFreed = true;
      throw error;
    });
  }
}

function halves(limit: number): readonly number[] {
  const half = Math.ceil(limit / 2);
  return [half, limit - half];
}

/** The claim that was carried out first has taken the first jobs of a group that both have met. */
function inTheirOrder(answers: readonly GroupClaimResult[]): readonly ClaimedJob[] {
  const timeOf = ({ jobs }: GroupClaimResult) => jobs[0]?.claimedAt.getTime() ?? 0;
  return [...answers].sort((a, b) => timeOf(a) - timeOf(b)).flatMap(({ jobs }) => jobs);
}
