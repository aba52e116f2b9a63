import type { Claim, ClaimedJob } from '../../../core/queries/claim/claim-jobs.ts';
import type { GroupClaims, GroupClaimsOptions } from '../../../core/worker/claim/claim-groups.ts';
import type { ClaimAnswer } from '../../../core/worker/claim/claims.ts';
import { KeptPlans } from '../../../core/worker/statements/kept-plans.ts';
import {
  type Admission,
  admitFewGroups,
  admitGroups,
  FEW_NOTES,
  MAX_NOTES,
} from '../queries/admit-groups.ts';
import {
  claimFewOfGroups,
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
/**
 * After so many admissions in a row the claim is made all the same. With one for each claim, a group waits
 * for as many claims as there are admissions before its note: those of a group enqueued one by one, say.
 */
const MAX_ADMISSIONS = 10;

/**
 * The claims of a queue whose jobs are in groups: each after folding in what was noted for them. Where there
 * are many groups, it is folded in beside the claim: it seldom is about the groups whose turn it is now. Both
 * skip what the other has locked, and the claim also what the other has changed. A large claim is made in two
 * halves beside each other there, as two workers would: with one after the other the server often waits.
 */
export class ClaimsByTurns implements GroupClaims {
  readonly #options: ClaimsByTurnsOptions;
  #seekFreed = true;
  #leftOut: readonly string[] = [];
  /** The last claim brought jobs of so many groups that those of the next one are probably others. */
  #amongMany = false;
  /** The last claim brought few jobs, so the next one probably will. */
  #wereFew = true;
  readonly #keptPlans: KeptPlans;
  /** Which of the two lanes of groups the last claim began with: they take turns. */
  #ringFirst = false;
  /** Groups may wait that no claim has met: only then are they looked for. */
  #newGroups = true;

  /** A claim has met a group of which only so many jobs may be held: that may be set at run time. */
  #metBounds = false;
  readonly #starts: GroupStarts;

  constructor(options: ClaimsByTurnsOptions) {
    this.#options = options;
    this.#keptPlans = new KeptPlans({
      runner: options.runner,
      tables: options.groups.tables,
      sizes: 'small',
    });
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
    const few = this.#wereFew && !this.#amongMany && this.#keptPlans.size === 'small';
    const most = few ? Math.min(demand, FEW) : demand;
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
    const { runner, queue, workerId, groups, attempts } = this.#options;
    const { tables, concurrency, rate } = groups;
    await this.#noteFreed();
    const kinds = this.#options.kinds.filter((kind) => this.#roomOf(kind) > 0);
    this.#leftOut = this.#options.kinds.filter((kind) => !kinds.includes(kind));
    const rooms = new Map(
      kinds.map((kind) => [kind, this.#roomOf(kind)] as const).filter(([, room]) => room < demand),
    );
    const leftOut = this.#leftOut.length > 0;
    const beside = this.#amongMany && kinds.length > 0;
    this.#amongMany = false;
    // Its failure must not hide what the claim brings; the next one, before a claim, will tell.
    const noting = beside
      ? admitGroups(runner, tables, queue).catch(() => undefined)
      : Promise.resolve(await this.#admitAll(few));
    if (!beside) this.#newGroups = (await noting)?.newGroups ?? true;
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
      newGroups: this.#newGroups,
      withCosts: this.#options.gate?.countsCosts,
      without: this.#options.tries?.setAside.ids,
    };
    // Of two claims each would take what there is room for.
    const shares = beside && demand >= 2 * MANY && rooms.size === 0 ? halves(demand) : [demand];
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
    this.#metBounds ||= answers.some(({ bounded }) => bounded);
    // What it has left for its rate, the next one takes.
    const metRate = !this.#starts.areKnown && answers.some(({ rated }) => rated);
    this.#starts.areKnown ||= metRate;
    const noted = await noting;
    if (failure !== undefined && jobs.length === 0) throw failure;
    this.#newGroups = noted?.newGroups ?? true;
    this.#amongMany = failure === undefined && noted !== undefined && areOfMany(jobs);
    this.#wereFew = jobs.length < FEW;
    // What was folded in beside it, no claim has seen yet.
    const isBehind = beside && noted?.used !== 0;
    // A later note is notified, or found by the watch.
    const isUnfolded = isBehind || (noted !== undefined && noted.used >= MAX_NOTES);
    const goesOn = (more && jobs.length > 0) || metRate || isUnfolded;
    const isLeft = noted?.left !== false || answers.some(({ left }) => left);
    const sawEnd = jobs.length < demand && !more && !isBehind && !isLeft && failure === undefined;
    const endMs = performance.now();
    return { jobs, limit: demand, kinds, among: false, sawEnd, leftOut, endMs, goesOn, failure };
  }

  async #claim(claim: GroupClaim, few: boolean): Promise<GroupClaimResult> {
    const starts = this.#starts.ofClaim();
    const answer = await this.#send({ ...claim, starts }, few);
    if (starts !== undefined) this.#starts.noteAnswer(starts);
    return answer;
  }

  async #send(claim: GroupClaim, few: boolean): Promise<GroupClaimResult> {
    const { runner, groups } = this.#options;
    if (few && this.#keptPlans.size === 'small') {
      const answer = await claimFewOfGroups(runner, groups.tables, claim);
      if (answer !== undefined) return answer;
      this.#keptPlans.noteOther('small');
    }
    return await claimGroupedJobs(runner, groups.tables, claim);
  }

  async #admitAll(few: boolean): Promise<Admission> {
    const { runner, queue, groups } = this.#options;
    if (few) {
      const admission = await admitFewGroups(runner, groups.tables, queue);
      if (admission === undefined) this.#keptPlans.noteOther('small');
      else if (admission.used < FEW_NOTES) return admission;
    }
    let admission = await admitGroups(runner, groups.tables, queue);
    for (let sent = 1; admission.used >= MAX_NOTES && sent < MAX_ADMISSIONS; sent++) {
      admission = await admitGroups(runner, groups.tables, queue);
    }
    return admission;
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

/** Whether most of them are of a group each, so that the next ones are probably of others. */
function areOfMany(jobs: readonly ClaimedJob[]): boolean {
  return jobs.length >= MANY && new Set(jobs.map(({ group }) => group)).size > jobs.length / 2;
}
