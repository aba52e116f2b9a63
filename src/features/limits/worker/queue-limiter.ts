import type { AttemptsAtGate, ClaimAtGate, Gate, JobAtGate } from '../../../core/worker/begin/gate.ts';
import type { Lease } from './lease.ts';
import type { DueStarts, Starts } from './starts.ts';

/** What a worker has of the limits of a queue, or of a kind in it. */
export interface Allowance {
  readonly lease: Lease;
  /** `undefined` where the code declares no rate. */
  readonly starts: Starts | undefined;
}

export interface QueueLimiterOptions {
  /** Of the queue as a whole. */
  readonly whole: Allowance;
  /** Of kinds with a limit of their own. */
  readonly kinds: ReadonlyMap<string, Allowance>;
  /** The slots that the process has for the queue. */
  readonly concurrency: number;
  /** Called when more or less may be used than before. */
  readonly onUse: (limiter: QueueLimiter) => void;
}

/** Stands for all kinds without a limit of their own. */
const OTHERS = undefined;
/** The weight of one job in the average: it follows the last twenty or so. */
const WEIGHT = 0.05;
const NOTHING: AttemptsAtGate = {
  waiting: [],
  gathering: [],
  nextBatch: [],
  free: 0,
  mayBegin: false,
  beginWaiting: () => undefined,
};

/** Keeps the handlers of one queue in one process within what the worker has of the queue's limits. */
export class QueueLimiter implements Gate {
  readonly allowances: readonly Allowance[];
  /** Whether the queue, or a kind of it, has a rate: then jobs are claimed with their costs. */
  readonly countsCosts: boolean;
  readonly kinds: ReadonlySet<string>;
  readonly #options: QueueLimiterOptions;
  /** Of which of its kinds more jobs are known to be due than were claimed. */
  readonly #backlog = new Set<string | typeof OTHERS>();
  /** Of which rates a job that had a slot lacked starts, which were not asked for since. */
  readonly #lacked = new Set<Starts>();
  #attempts = NOTHING;
  #meanCost = 1;
  #onRoom: () => void = () => undefined;

  constructor(options: QueueLimiterOptions) {
    this.#options = options;
    this.allowances = [options.whole, ...options.kinds.values()];
    this.countsCosts = this.allowances.some(({ starts }) => starts !== undefined);
    this.kinds = new Set(options.kinds.keys());
  }

  serve(attempts: AttemptsAtGate, onRoom: () => void): void {
    this.#attempts = attempts;
    this.#onRoom = onRoom;
  }

  /** The first of those that wait that may begin. None overtakes another that waits for the same starts. */
  next<T extends { readonly job: JobAtGate }>(waiting: readonly T[]): T | undefined {
    const { whole, kinds } = this.#options;
    if (!whole.lease.mayBegin) return undefined;
    const nowMs = performance.now();
    const refused = new Set<string>();
    for (const attempt of waiting) {
      const { kind } = attempt.job;
      if (refused.has(kind) || kinds.get(kind)?.lease.mayBegin === false) continue;
      const lacking = this.#lacking([attempt.job], nowMs);
      if (lacking === undefined) return attempt;
      if (lacking === whole.starts) return undefined;
      refused.add(kind);
    }
    return undefined;
  }

  /** The rate of which there are too few starts for these jobs of one kind; it is asked about. */
  #lacking(jobs: readonly JobAtGate[], nowMs: number): Starts | undefined {
    for (const starts of this.#startsOf(jobs)) {
      const cost = costOf(starts, jobs);
      if (starts.available(nowMs) >= cost) continue;
      if (starts.isWorthAsking(cost, nowMs)) {
        this.#lacked.add(starts);
        this.#options.onUse(this);
      }
      return starts;
    }
    return undefined;
  }

  /** What jobs of a kind need: of the kind first, and of the queue. */
  #allowancesOf(kind: string): readonly Allowance[] {
    const { whole, kinds } = this.#options;
    const own = kinds.get(kind);
    return own === undefined ? [whole] : [own, whole];
  }

  /** The rates that these jobs of one kind are under. */
  #startsOf([job]: readonly JobAtGate[]): readonly Starts[] {
    return job === undefined ? [] : this.#allowancesOf(job.kind).flatMap(({ starts }) => starts ?? []);
  }

  /** Takes a slot, and spends the starts that the job costs; these may have become void since the look. */
  begin(job: JobAtGate): boolean {
    const nowMs = performance.now();
    const allowances = this.#allowancesOf(job.kind);
    if (allowances.some(({ lease }) => !lease.mayBegin)) return false;
    if (this.#lacking([job], nowMs) !== undefined) return false;
    this.#spend([job], nowMs);
    for (const { lease } of allowances) lease.begin();
    return true;
  }

  mostTogether(jobs: readonly JobAtGate[]): number {
    const together = this.#together(jobs);
    return this.#lacking(together, performance.now()) === undefined ? together.length : 0;
  }

  /** Those of a batch that ever may: no more than the whole limit, unless the first alone costs more. */
  #together(jobs: readonly JobAtGate[]): readonly JobAtGate[] {
    const most = Math.min(...this.#startsOf(jobs).map(({ limit }) => limit));
    let cost = 0;
    const over = jobs.findIndex((job, at) => {
      cost += job.cost ?? 1;
      return at > 0 && cost > most;
    });
    return over < 0 ? jobs : jobs.slice(0, over);
  }

  beginBatch(jobs: readonly JobAtGate[]): number {
    return this.#spend(jobs, performance.now());
  }

  #spend(jobs: readonly JobAtGate[], nowMs: number): number {
    let untilMs = Number.POSITIVE_INFINITY;
    let asks = false;
    for (const starts of this.#startsOf(jobs)) {
      untilMs = Math.min(untilMs, starts.spend(costOf(starts, jobs), nowMs));
      asks ||= starts.isWorthAsking(0, nowMs);
    }
    if (asks) this.#options.onUse(this);
    return untilMs;
  }

  end(kind: string): void {
    const nowMs = performance.now();
    const giving = this.#allowancesOf(kind).filter(({ lease }) => lease.end(nowMs));
    if (giving.length > 0) this.#options.onUse(this);
  }

  get slots(): number {
    const { whole, concurrency } = this.#options;
    return Math.min(concurrency, whole.lease.room);
  }

  /** Those whose jobs wait for a slot or a start of their kind, so they do not hold up jobs of others. */
  get heldUp(): ReadonlySet<string> {
    const nowMs = performance.now();
    const isHeldUp = ({ lease, starts }: Allowance) => !lease.mayBegin || starts?.isRefused(nowMs) === true;
    const kinds = [...this.#options.kinds].filter(([, allowance]) => isHeldUp(allowance));
    return new Set(kinds.map(([kind]) => kind));
  }

  /** How many more jobs of the queue to claim at most: for so many there may soon be starts. */
  get mostMore(): number {
    const { waiting, gathering } = this.#attempts;
    return this.#jobsIn(this.#options.whole.starts) - waiting.length - gathering.length;
  }

  ofKind(kind: string): { readonly slots: number; readonly held: number; readonly mostMore: number } {
    const own = this.#options.kinds.get(kind);
    const waiting = this.#waitingOf(kind);
    const gathering = this.#attempts.gathering.filter((job) => job.kind === kind).length;
    return {
      slots: Math.min(this.slots, own?.lease.room ?? Number.POSITIVE_INFINITY),
      held: waiting + (own?.lease.running ?? 0),
      mostMore: this.#jobsIn(own?.starts) - waiting - gathering,
    };
  }

  /** For how many jobs there may soon be starts, if they cost as much as others did. */
  #jobsIn(starts: Starts | undefined): number {
    const room = starts?.room(performance.now()) ?? Number.POSITIVE_INFINITY;
    return room < 1 ? 0 : Math.max(1, Math.floor(room / this.#meanCost));
  }

  /** Slots without a job wait for what the claim brings, however long that takes. */
  noteClaiming(claim: Promise<unknown>): void {
    for (const { lease } of this.allowances) lease.noteClaiming();
    const noteEnd = () => {
      const nowMs = performance.now();
      const waited = this.allowances.filter(({ lease }) => lease.noteClaimed(nowMs));
      if (waited.length > 0) this.#options.onUse(this);
    };
    claim.then(noteEnd, noteEnd);
  }

  noteClaim({ kinds, jobs, sawEnd }: ClaimAtGate): void {
    for (const { cost } of jobs) {
      if (cost !== undefined) this.#meanCost += (cost - this.#meanCost) * WEIGHT;
    }
    const told = sawEnd ? kinds : jobs.map(({ kind }) => kind);
    for (const kind of new Set(told)) {
      const lane = this.kinds.has(kind) ? kind : OTHERS;
      if (sawEnd) this.#backlog.delete(lane);
      else this.#backlog.add(lane);
    }
    if (told.length > 0) this.#options.onUse(this);
  }

  /** What the worker has of a limit may have changed. */
  noteChange(): void {
    this.#attempts.beginWaiting();
    this.noteRoom();
  }

  /** More may be worth a claim. */
  noteRoom(): void {
    this.#onRoom();
  }

  /** What jobs cost that could begin now, or a moment ago, if there were starts of a rate. */
  dueOf(starts: Starts): DueStarts {
    const { waiting, nextBatch, free } = this.#attempts;
    const nowMs = performance.now();
    const due = { all: 0, first: 0 };
    const note = (jobs: readonly JobAtGate[]) => {
      const cost = costOf(starts, jobs);
      if (due.all === 0) due.first = cost;
      due.all += cost;
    };
    const would = new Map<string, boolean>();
    const wouldBegin = (job: JobAtGate) => {
      const known = would.get(job.kind) ?? this.#wouldBegin(starts, job, nowMs);
      would.set(job.kind, known);
      return known;
    };
    // Its slot may have gone to a job of another kind, as the next one would: then it asks for that one.
    const lacked = this.#lacked.delete(starts);
    if (free <= 0 && !lacked) return due;
    const [inBatch] = nextBatch;
    if (inBatch !== undefined && wouldBegin(inBatch)) note(this.#together(nextBatch));
    // What waits was claimed because it will begin soon.
    for (const { job } of waiting) if (wouldBegin(job)) note([job]);
    if (free <= 0) due.all = due.first;
    return due;
  }

  /** Whether such a job needs these starts, and waits for nothing else that it is known to lack. */
  #wouldBegin(starts: Starts, job: JobAtGate, nowMs: number): boolean {
    const needed = this.#allowancesOf(job.kind);
    const lacksOther = ({ lease, starts: other }: Allowance) =>
      !lease.mayBegin || (other !== starts && other?.isRefused(nowMs) === true);
    return needed.some((one) => one.starts === starts) && !needed.some(lacksOther);
  }

  /** How many slots of a lease it could use. */
  appetite(lease: Lease): number {
    const { kinds, concurrency } = this.#options;
    const whole = this.#options.whole.lease;
    // What it gets would go unused, and be passed on by each in turn.
    if (!this.#attempts.mayBegin) return lease.running;
    const mostIn = ({ refused, room }: Lease) => (refused ? room : concurrency);
    if (lease !== whole) {
      return Math.max(Math.min(this.#wanted(lease.question.kind, lease), mostIn(whole)), lease.running);
    }
    const held = this.#attempts.waiting.filter(({ job }) => !kinds.has(job.kind)).length;
    let inKinds = 0;
    let wanted = 0;
    for (const [kind, { lease: ofKind }] of kinds) {
      inKinds += ofKind.running;
      wanted += Math.max(Math.min(this.#wanted(kind, whole), mostIn(ofKind)), ofKind.running);
    }
    const others = whole.refused && this.#hasMore(OTHERS) ? concurrency : 0;
    return Math.min(concurrency, wanted + Math.max(others, held + whole.running - inKinds));
  }

  /** Where it was refused some it asks for as many as it could use; else for what it has jobs for. */
  #wanted(kind: string, { refused }: Lease): number {
    const { concurrency } = this.#options;
    if (refused && this.#hasMore(kind)) return concurrency;
    return Math.min(concurrency, this.#waitingOf(kind) + (this.#options.kinds.get(kind)?.lease.running ?? 0));
  }

  /** Whether more jobs are known to be due, and worth a claim as far as rates are known. */
  #hasMore(lane: string | typeof OTHERS): boolean {
    if (!this.#backlog.has(lane)) return false;
    const { whole, kinds } = this.#options;
    const under = lane === OTHERS ? [whole] : [whole, kinds.get(lane)];
    return under.every((one) => this.#jobsIn(one?.starts) > 0);
  }

  #waitingOf(kind: string): number {
    return this.#attempts.waiting.filter(({ job }) => job.kind === kind).length;
  }
}

/** What jobs cost together: no more than the whole limit, or they would never begin. */
function costOf(starts: Starts, jobs: readonly JobAtGate[]): number {
  const cost = jobs.reduce((sum, { cost = 1 }) => sum + cost, 0);
  return Math.min(cost, starts.limit);
}
