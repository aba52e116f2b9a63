import {
  type Band,
  type Claim,
  type ClaimedJob,
  claimByKeptPlan,
  claimJobs,
  sawTheEnd,
} from '../../queries/claim/claim-jobs.ts';
import { findDueIds } from '../../queries/claim/find-due-ids.ts';
import type { ClaimPlace } from '../../queries/claim/find-overlooked.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database } from '../../sql/executor.ts';
import type { Demand } from '../begin/demand.ts';
import { KeptPlans } from '../statements/kept-plans.ts';
import type { WorkerRunner } from '../statements/statements.ts';
import type { ClaimTries } from './claim-tries.ts';
import { ClaimTurn } from './claim-turn.ts';
import type { Lane } from './lane.ts';

export interface ClaimsOptions {
  /** Shared by workers of one process. */
  readonly db: Database;
  readonly runner: WorkerRunner;
  readonly tables: QueueTables;
  readonly queue: string;
  readonly workerId: number;
  readonly lanes: readonly Lane[];
  readonly demand: Pick<Demand, 'size' | 'ofKind' | 'beginning'>;
  /** Whether jobs are claimed with their costs. @default false */
  readonly withCosts?: boolean | undefined;
  readonly tries: ClaimTries;
}

/** What one claim has brought. */
export interface ClaimAnswer {
  readonly jobs: readonly ClaimedJob[];
  /** The most that it could have brought, however large they are. */
  readonly limit: number;
  /** The kinds that it was for. */
  readonly kinds: readonly string[];
  /**
   * Whether it was for some of what can be claimed, and not for the next ones in order: for jobs that are
   * known by their ids, or for those kinds that have more free slots than others.
   */
  readonly among: boolean;
  /** Whether it has seen the last due job of its kinds. */
  readonly sawEnd: boolean;
  /** Whether kinds were left out that have no free slot; all of them, where it was not sent. */
  readonly leftOut: boolean;
  /** When the result came, by the monotonic clock. */
  readonly endMs: number;
  /** Whether jobs are left to be claimed although it brought fewer than it asked for. @default false */
  readonly goesOn?: boolean;
  /** Why a part of it has failed, which the server may have carried out all the same. */
  readonly failure?: unknown;
}

/** The claims of one queue. */
export interface QueueClaims {
  /** Whether kinds can be claimed again that the last claim has left out. */
  readonly hasNewRoom: boolean;
  /**
   * Claims as many jobs as there is use for; `undefined` where that is none.
   * @throws what the driver throws; then the server may have carried the claim out all the same
   */
  next(): Promise<ClaimAnswer> | undefined;
}

/** One try of a claim. */
interface NextClaim extends Pick<Claim, 'limit' | 'beginning'> {
  /** The jobs that it leaves out. */
  readonly without: readonly number[];
}

/** One queue's claims: of the next jobs from the floors on, and of overlooked ones by id, in fair turns. */
export class Claims implements QueueClaims {
  readonly #options: ClaimsOptions;
  readonly #turn: ClaimTurn;
  /** The next ones in order have their turn now. */
  #tookOverlooked = false;
  /**
   * The last claim took only as many jobs as the kind with the fewest free slots has room for, and left
   * others waiting.
   */
  #heldUp = false;
  #leftOut: readonly Lane[] = [];
  /** How many lanes' overlooked jobs have had their turn. */
  #turns = 0;
  readonly #keptPlans: KeptPlans;

  constructor(options: ClaimsOptions) {
    this.#options = options;
    this.#turn = ClaimTurn.of(options.db, options.tables, options.queue);
    this.#keptPlans = new KeptPlans(options);
  }

  get hasNewRoom(): boolean {
    return this.#leftOut.some((lane) => this.#roomOf(lane) > 0);
  }

  next(): Promise<ClaimAnswer> | undefined {
    const { lanes, demand } = this.#options;
    const open = lanes.filter((lane) => this.#roomOf(lane) > 0);
    if (open.length === 0) return undefined;
    this.#leftOut = lanes.filter((lane) => !open.includes(lane));
    const found = this.#tookOverlooked ? undefined : this.#nextFound(open);
    this.#tookOverlooked = found !== undefined;
    if (found === undefined) return this.#nextInOrder(open, demand.beginning);
    return this.#among(found, this.#roomOf(found), demand.beginning);
  }

  /** How many jobs of a lane to claim now. */
  #roomOf({ limited }: Lane): number {
    const { demand } = this.#options;
    return limited === undefined ? demand.size : demand.ofKind(limited);
  }

  /** The next ones of all open lanes; where that leaves some waiting, then of those with the most room. */
  async #nextInOrder(open: readonly Lane[], beginning: Claim['beginning']): Promise<ClaimAnswer> {
    const most = Math.max(...open.map((lane) => this.#roomOf(lane)));
    const wide = open.filter((lane) => this.#roomOf(lane) >= most);
    const some = this.#heldUp && wide.length < open.length;
    const lanes = some ? wide : open;
    // No more than there is room for of any.
    const limit = Math.min(...lanes.map((lane) => this.#roomOf(lane)));
    const answer = await this.#inOrder(lanes, limit, beginning);
    this.#heldUp = limit < most && !answer.sawEnd;
    // Nothing else reports these: a sweep pauses once it has found enough.
    return { ...answer, among: some, goesOn: open.some(hasFound) };
  }

  /** The lane whose overlooked jobs are claimed next; they take turns. */
  #nextFound(open: readonly Lane[]): Lane | undefined {
    const having = open.filter(hasFound);
    return having[this.#turns++ % having.length];
  }

  async #inOrder(
    lanes: readonly Lane[],
    limit: number,
    beginning: Claim['beginning'],
  ): Promise<Omit<ClaimAnswer, 'among'>> {
    const { runner, tables, queue } = this.#options;
    // Stopped or paused while it waited for its turn, it claims nothing.
    const left = (limit: number) => (lanes.some((lane) => this.#roomOf(lane) > 0) ? limit : 0);
    return await this.#options.tries.send({
      limit,
      send: (limit, without) =>
        this.#turn.take(limit, () => this.#nextOf(lanes, { limit: left(limit), beginning, without })),
      candidates: (limit, without) =>
        findDueIds(runner, tables, {
          queue,
          kinds: kindsOf(lanes),
          bands: bandsOf(lanes, limit, performance.now()),
          limit,
          without,
        }),
    });
  }

  async #nextOf(
    lanes: readonly Lane[],
    { limit, beginning, without }: NextClaim,
  ): Promise<Omit<ClaimAnswer, 'among'>> {
    const kinds = kindsOf(lanes);
    const startMs = performance.now();
    // Nothing is sent, so nothing is known of what is due.
    if (limit === 0) return { jobs: [], limit, kinds, sawEnd: false, leftOut: true, endMs: startMs };
    const leftOut = this.#leftOut.length > 0;
    const sent = bandsOf(lanes, limit, startMs);
    const jobs = await this.#claim({ kinds, bands: sent, limit, beginning, without });
    const endMs = performance.now();
    const sawEnd = sawTheEnd(limit, jobs);
    for (const { bands } of lanes) bands.note({ bands: sent, jobs, short: sawEnd, startMs, endMs });
    return { jobs, limit, kinds, sawEnd, leftOut, endMs };
  }

  async #among(lane: Lane, limit: number, beginning: Claim['beginning']): Promise<ClaimAnswer> {
    const { overlooked, bands } = lane;
    const places = overlooked.take(limit, bands.busyPriority);
    return await this.#options.tries
      .send({
        limit: places.length,
        send: (most, without) => this.#amongPlaces(lane, places, { limit: most, beginning, without }),
        candidates: async (_, without) => allBut(without, places).map(({ id }) => id),
      })
      .catch((error: unknown) => {
        // They are where they were, or will be put back there.
        overlooked.add(places);
        throw error;
      });
  }

  async #amongPlaces(
    { kinds, overlooked, bands }: Lane,
    places: readonly ClaimPlace[],
    { limit, beginning, without }: NextClaim,
  ): Promise<ClaimAnswer> {
    const wanted = allBut(without, places);
    const ids = wanted.slice(0, limit).map(({ id }) => id);
    const sent = {
      kinds,
      bands: bands.next(ids.length, performance.now()),
      limit: ids.length,
      // Named jobs come in no order, so none of them is known to come before the others.
      beginning: typeof beginning === 'object' ? 0 : beginning,
      fromGoneWorkers: true,
      ids,
    };
    const jobs = ids.length > 0 ? await this.#claim(sent) : [];
    const endMs = performance.now();
    const isCut = !sawTheEnd(ids.length, jobs);
    if (isCut || ids.length < wanted.length) {
      // Jobs that were not claimed: the payloads were too large for one claim, or they were not sent.
      const claimed = new Set(jobs.map(({ id }) => id));
      overlooked.add((isCut ? wanted : wanted.slice(limit)).filter(({ id }) => !claimed.has(id)));
    }
    return {
      jobs,
      limit: places.length,
      kinds,
      among: true,
      sawEnd: false,
      leftOut: this.#leftOut.length > 0,
      endMs,
    };
  }

  async #claim(
    claim: Pick<Claim, 'kinds' | 'bands' | 'limit' | 'beginning' | 'ids' | 'without'> & {
      fromGoneWorkers?: boolean;
    },
  ): Promise<ClaimedJob[]> {
    const { runner, tables, queue, workerId, withCosts } = this.#options;
    const complete = { queue, workerId, fromGoneWorkers: false, withCosts, ...claim };
    const plans = this.#keptPlans;
    for (let { size } = plans; claim.ids === undefined && size !== undefined; { size } = plans) {
      const jobs = await claimByKeptPlan(runner, tables, { ...complete, ifTableIs: size });
      if (jobs !== undefined) return jobs;
      plans.noteOther(size);
    }
    return await claimJobs(runner, tables, complete);
  }
}

function allBut(without: readonly number[], places: readonly ClaimPlace[]): readonly ClaimPlace[] {
  return without.length === 0 ? places : places.filter(({ id }) => !without.includes(id));
}

/** Whether some of its overlooked jobs may be claimed now. */
function hasFound({ overlooked, bands }: Lane): boolean {
  return overlooked.has(bands.busyPriority);
}

function kindsOf(lanes: readonly Lane[]): readonly string[] {
  const [first] = lanes;
  return first !== undefined && lanes.length === 1 ? first.kinds : lanes.flatMap(({ kinds }) => kinds);
}

/** Where a claim of several lanes starts: at the lowest of their floors. Jobs of several lanes do not age. */
function bandsOf(lanes: readonly Lane[], limit: number, nowMs: number): Band[] {
  const [first = [], ...others] = lanes.map(({ bands }) => bands.next(limit, nowMs));
  if (others.length === 0) return first;
  return first.map(({ priority, floorMs }, index) => ({
    priority,
    floorMs: Math.min(floorMs, ...others.map((bands) => bands[index]?.floorMs ?? Number.NEGATIVE_INFINITY)),
  }));
}
