import type { Claim, ClaimedJob } from '../../../core/queries/claim/claim-jobs.ts';
import type { GroupClaims, GroupClaimsOptions } from '../../../core/worker/claim/claim-groups.ts';
import type { ClaimAnswer } from '../../../core/worker/claim/claims.ts';
import { KeptPlans } from '../../../core/worker/statements/kept-plans.ts';
import { admitGroups, MAX_NOTES } from '../queries/admit-groups.ts';
import {
  claimGroupedJobs,
  claimGroupsByKeptPlan,
  FEW,
  type GroupClaimResult,
  type Sign,
} from '../queries/claim-grouped-jobs.ts';
import { findGroupedDueIds } from '../queries/find-grouped-due-ids.ts';
import { noteFreedGroups } from '../queries/note-groups.ts';
import { boundsGroups, type GroupSettings } from '../settings/limit-settings.ts';
import type { GroupClaim } from '../sql/group-claim.ts';
import { MOST_SOUGHT } from '../sql/groups-in-turn.ts';
import type { GroupTables } from '../sql/limit-tables.ts';
import { GroupStarts } from './group-starts.ts';
import { isOfFew, MANY, NOTHING_KNOWN, outlookAfter } from './outlook.ts';

export interface ClaimsByTurnsOptions extends GroupClaimsOptions {
  readonly tables: GroupTables;
  /** What the code declares of the groups. */
  readonly settings: GroupSettings;
  /** Looks beside the claims for groups that gone workers have freed. */
  readonly seekFreed: () => void;
}

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
  /** Of a drain, which is over only after this look. */
  #seekFreed = false;
  #leftOut: readonly string[] = [];
  #outlook = NOTHING_KNOWN;
  readonly #keptPlans: KeptPlans;
  /** Which of the two lanes of groups the last claim began with: they take turns. */
  #ringFirst = false;
  /** How many groups the next claim that seeks passes: one after the other they seek among all. */
  #passed = 0;
  /** The kinds that a round of such claims has sought from its first on, with no job found or told of. */
  #soughtAll: readonly string[] = [];
  /** A claim has met a group of which only so many jobs may be held: that may be set at run time. */
  #metBounds = false;
  readonly #starts: GroupStarts;

  constructor(options: ClaimsByTurnsOptions) {
    this.#options = options;
    this.#keptPlans = new KeptPlans(options);
    this.#starts = new GroupStarts(options.settings.rate !== undefined);
  }

  get awaitsEnds(): boolean {
    return boundsGroups(this.#options.settings) || this.#metBounds;
  }

  get hasNewRoom(): boolean {
    return this.#leftOut.some((kind) => this.#roomOf(kind) > 0);
  }

  noteTold(): void {
    this.#soughtAll = [];
  }

  /** Workers are gone. Nothing else tells claims about the jobs they held. */
  seekFreed(): void {
    if (this.#options.until === 'empty') this.#seekFreed = true;
    else this.#options.seekFreed();
  }

  next(): Promise<ClaimAnswer> | undefined {
    const { demand } = this.#options;
    return demand.size > 0 ? this.#sendOrLookAnew(demand.size, demand.beginning) : undefined;
  }

  /** They come in no order of their own, so none is known to stand before the others. */
  async #sendOrLookAnew(most: number, beginning: Claim['beginning']): Promise<ClaimAnswer> {
    try {
      return await this.#send(most, beginning);
    } catch (error) {
      // Where it fails each time, the groups that it has passed would never be looked at again.
      this.#passed = 0;
      this.#outlook = { ...this.#outlook, seeks: false };
      throw error;
    }
  }

  async #send(most: number, beginning: Claim['beginning']): Promise<ClaimAnswer> {
    const { runner, tables, tries } = this.#options;
    const { size } = this.#keptPlans;
    const few = isOfFew(this.#outlook, size);
    const limit = few && size === 'small' ? Math.min(most, FEW.small) : most;
    if (tries === undefined) return await this.#next(limit, few, beginning, []);
    return await tries.send({
      limit,
      send: (limit, without) => this.#next(limit, few, beginning, without),
      candidates: async (limit, without) => {
        const kinds = this.#options.kinds.filter((kind) => !this.#leftOut.includes(kind));
        const claim = { ...this.#claimOf(limit, kinds, without), starts: this.#starts.ofClaim() };
        return await findGroupedDueIds(runner, tables, claim);
      },
    });
  }

  async #next(
    demand: number,
    few: boolean,
    beginning: Claim['beginning'],
    without: readonly number[],
  ): Promise<ClaimAnswer> {
    await this.#noteFreed();
    const kinds = this.#options.kinds.filter((kind) => this.#roomOf(kind) > 0);
    this.#leftOut = this.#options.kinds.filter((kind) => !kinds.includes(kind));
    const leftOut = this.#leftOut.length > 0;
    const asked = { limit: demand, kinds, among: false };
    const outlook = this.#outlook;
    if (outlook.foldsFirst && kinds.length > 0) await this.#admitAll();
    const claim = this.#claimOf(demand, kinds, without);
    const inHalves = outlook.isAmongMany && demand >= 2 * MANY && claim.rooms.size === 0;
    // One that fails, or that is not made, tells nothing of groups.
    this.#outlook = { ...outlook, isAmongMany: false };
    // The worker may have been stopped, or the queue paused, while the notes were folded in.
    if (kinds.length === 0 || this.#options.demand.size <= 0) {
      return { ...asked, jobs: [], sawEnd: false, leftOut: true, endMs: performance.now() };
    }
    if (claim.passed === 0) this.#soughtAll = kinds;
    // Of two claims each would take what there is room for.
    const shares = inHalves ? halves(demand) : [demand];
    // Of two first jobs one waits behind many others: a crash must not spend its attempt.
    const begins = beginning === 1 && shares.length === 1 ? 1 : 0;
    const claims = shares.map((limit) => {
      this.#ringFirst = !this.#ringFirst;
      return this.#claim(
        { ...claim, limit, groups: limit, beginning: begins, ringFirst: this.#ringFirst },
        few,
      );
    });
    const outcomes = await Promise.allSettled(claims);
    const answers = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    const jobs = inTheirOrder(answers);
    // One that fails takes nothing from the other, whose jobs are known to be held.
    const failure: unknown = outcomes.find((outcome) => outcome.status === 'rejected')?.reason;
    // Its next try looks at the same groups.
    if (failure !== undefined && jobs.length === 0) throw failure;
    const tell = (sign: Sign) => answers.some(({ signs }) => signs.has(sign));
    const more = tell('more');
    const left = tell('left');
    const unsought = tell('unsought') && jobs.length < demand;
    this.#passed = unsought ? this.#passed + MOST_SOUGHT : 0;
    this.#metBounds ||= tell('bounded');
    // What it has left for its rate, the next one takes.
    const metRate = tell('rated');
    this.#starts.areKnown ||= metRate;
    this.#outlook = outlookAfter(
      { demand, shares, answers, jobs, hasFailed: failure !== undefined },
      outlook.wasCrowded,
    );
    // Notes that it has not read may tell of what it seeks: they are folded in once.
    const folds = claim.seeks && this.#outlook.foldsFirst && !outlook.foldsFirst;
    const isBehind = left && (folds || tell('used'));
    // It may have met only groups of which it could take nothing: the next one passes these.
    const goesOn =
      (more && (jobs.length > 0 || few || tell('aside'))) ||
      (this.#outlook.seeks && !claim.seeks) ||
      // A look at all at once would keep the database busy for each worker without jobs.
      (unsought && this.#options.until === 'empty') ||
      metRate ||
      isBehind;
    // Into the groups that it has passed jobs may have come since others of its round looked at them.
    const isWhole = claim.passed === 0 || kinds.every((kind) => this.#soughtAll.includes(kind));
    const isPartial = unsought || !isWhole;
    // Groups have moved, so the next one may pass some that none has looked at. Those that others move are
    // not noticed here: a round may miss a group for it, and the next look at the queue finds that.
    if (jobs.length > 0 || more || left) this.#soughtAll = [];
    const sawEnd = jobs.length < demand && !more && !left && !isPartial && failure === undefined;
    const endMs = performance.now();
    return { ...asked, jobs, sawEnd, leftOut, endMs, goesOn, failure };
  }

  #claimOf(limit: number, kinds: readonly string[], without: readonly number[]) {
    const { queue, workerId, settings, demand, gate } = this.#options;
    const { concurrency, rate } = settings;
    const rooms = kinds.map((kind) => [kind, this.#roomOf(kind)] as const);
    return {
      queue,
      kinds,
      workerId,
      limit,
      groups: limit,
      limits: { concurrency, rate, run: demand.perGroup },
      rooms: new Map(rooms.filter(([, room]) => room < limit)),
      withCosts: gate?.countsCosts ?? false,
      beginning: 0,
      without,
      ringFirst: this.#ringFirst,
      seeks: this.#outlook.seeks,
      passed: this.#passed,
      ifTablesAre: undefined,
    } as const;
  }

  async #claim(claim: Omit<GroupClaim, 'starts'>, few: boolean): Promise<GroupClaimResult> {
    const starts = this.#starts.ofClaim();
    const answer = await this.#claimByPlan({ ...claim, starts }, few);
    if (starts !== undefined) this.#starts.noteAnswer(starts);
    return answer;
  }

  async #claimByPlan(claim: GroupClaim, few: boolean): Promise<GroupClaimResult> {
    const { runner, tables } = this.#options;
    for (let { size } = this.#keptPlans; few && size !== undefined; { size } = this.#keptPlans) {
      const answer = await claimGroupsByKeptPlan(runner, tables, claim, size);
      if ('jobs' in answer) return answer;
      this.#keptPlans.noteOther(size, answer.areJobsSmall);
    }
    return await claimGroupedJobs(runner, tables, claim);
  }

  async #admitAll(): Promise<void> {
    const { runner, tables, queue } = this.#options;
    let sent = 0;
    while (sent++ < MAX_ADMISSIONS && (await admitGroups(runner, tables, queue)) >= MAX_NOTES);
  }

  /** How many jobs of one kind may be claimed. */
  #roomOf(kind: string): number {
    const { gate, demand } = this.#options;
    return gate?.kinds.has(kind) ? demand.ofKind(kind) : Number.POSITIVE_INFINITY;
  }

  async #noteFreed(): Promise<void> {
    if (!this.#seekFreed) return;
    const { runner, tables, queue } = this.#options;
    this.#seekFreed = false;
    await noteFreedGroups(runner, tables, queue).catch((error: unknown) => {
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
