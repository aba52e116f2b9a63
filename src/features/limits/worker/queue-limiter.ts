import type { AttemptsAtGate, ClaimAtGate, Gate, JobAtGate } from '../../../core/worker/begin/gate.ts';
import type { Lease } from './lease.ts';
import type { DueStarts, Starts } from './starts.ts';

export interface QueueLimiterOptions {
  /** Of the queue as a whole. */
  readonly lease: Lease;
  /** Of kinds with a limit of their own. */
  readonly kinds: ReadonlyMap<string, Lease>;
  /** Of the rates of the queue, under the kind '', and of its kinds. */
  readonly starts: ReadonlyMap<string, Starts>;
  /** The slots that the process has for the queue. */
  readonly concurrency: number;
  /** Called when more or less may be used than before. */
  readonly onUse: (limiter: QueueLimiter) => void;
}

/** Stands for all kinds without a limit of their own. */
const OTHERS = undefined;
/** The weight of one job in the average: it follows the last twenty or so. */
const WEIGHT = 0.05;
const NO_KINDS: ReadonlySet<string> = new Set();
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
  readonly #options: QueueLimiterOptions;
  /** Of which of its kinds more jobs are known to be due than were claimed. */
  readonly #backlog = new Set<string | typeof OTHERS>();
  readonly #ofQueue: Starts | undefined;
  /** The rates that jobs of a kind are under, as far as they were asked for. */
  readonly #byKind = new Map<string, readonly Starts[]>();
  /** Of which rates a job that had a slot lacked starts, which were not asked for since. */
  readonly #lacked = new Set<Starts>();
  #attempts = NOTHING;
  #meanCost = 1;
  #onRoom: () => void = () => undefined;

  constructor(options: QueueLimiterOptions) {
    this.#options = options;
    this.#ofQueue = options.starts.get('');
  }

  serve(attempts: AttemptsAtGate, onRoom: () => void): void {
    this.#attempts = attempts;
    this.#onRoom = onRoom;
  }

  get leases(): Lease[] {
    return [this.#options.lease, ...this.#options.kinds.values()];
  }

  /** Of its rates, by kind; '' is the queue. */
  get starts(): ReadonlyMap<string, Starts> {
    return this.#options.starts;
  }

  /** Whether the queue, or a kind of it, has a rate: then jobs are claimed with their costs. */
  get countsCosts(): boolean {
    return this.#options.starts.size > 0;
  }

  get kinds(): ReadonlySet<string> {
    return new Set(this.#options.kinds.keys());
  }

  /** The first of those that wait that may begin. None overtakes another that waits for the same starts. */
  next<T extends { readonly job: JobAtGate }>(waiting: readonly T[]): T | undefined {
    const { lease, kinds } = this.#options;
    if (!lease.mayBegin) return undefined;
    const nowMs = this.countsCosts ? performance.now() : 0;
    let refused: Set<string> | undefined;
    for (const attempt of waiting) {
      const { kind } = attempt.job;
      if (refused?.has(kind) || kinds.get(kind)?.mayBegin === false) continue;
      const lacking = this.#lacking([attempt.job], nowMs);
      if (lacking === undefined) return attempt;
      if (lacking === this.#ofQueue) return undefined;
      refused ??= new Set();
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

  /** The rates that these jobs of one kind are under. */
  #startsOf([job]: readonly JobAtGate[]): readonly Starts[] {
    if (job === undefined) return [];
    const known = this.#byKind.get(job.kind);
    if (known !== undefined) return known;
    const found = [this.#options.starts.get(job.kind), this.#ofQueue].filter((one) => one !== undefined);
    this.#byKind.set(job.kind, found);
    return found;
  }

  /** Takes a slot, and spends the starts that the job costs, unless these have become void since the look. */
  begin(job: JobAtGate): boolean {
    if (this.countsCosts) {
      const nowMs = performance.now();
      if (this.#lacking([job], nowMs) !== undefined) return false;
      this.#spend([job], nowMs);
    }
    this.#options.lease.begin();
    this.#options.kinds.get(job.kind)?.begin();
    return true;
  }

  mostTogether(jobs: readonly JobAtGate[]): number {
    if (!this.countsCosts) return jobs.length;
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
    return this.countsCosts ? this.#spend(jobs, performance.now()) : Number.POSITIVE_INFINITY;
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
    const gives = this.#options.lease.end(nowMs);
    if (this.#options.kinds.get(kind)?.end(nowMs) || gives) this.#options.onUse(this);
  }

  get slots(): number {
    const { lease, concurrency } = this.#options;
    return Math.min(concurrency, lease.room);
  }

  /** Those whose jobs wait for a slot or a start of their kind, so they do not hold up jobs of others. */
  get heldUp(): ReadonlySet<string> {
    const { kinds, starts } = this.#options;
    if (kinds.size === 0) return NO_KINDS;
    const nowMs = performance.now();
    const isHeldUp = (kind: string) =>
      kinds.get(kind)?.mayBegin === false || starts.get(kind)?.isRefused(nowMs) === true;
    return new Set([...kinds.keys()].filter(isHeldUp));
  }

  /** How many more jobs of the queue to claim at most: for so many there may soon be starts. */
  get mostMore(): number {
    const starts = this.#ofQueue;
    if (starts === undefined) return Number.POSITIVE_INFINITY;
    const { waiting, gathering } = this.#attempts;
    return this.#jobsIn(starts) - waiting.length - gathering.length;
  }

  ofKind(kind: string): { readonly slots: number; readonly held: number; readonly mostMore: number } {
    const lease = this.#options.kinds.get(kind);
    const slots = lease?.room ?? Number.POSITIVE_INFINITY;
    const waiting = this.#waitingOf(kind);
    const starts = this.#options.starts.get(kind);
    return {
      slots: Math.min(this.slots, slots),
      held: waiting + (lease?.running ?? 0),
      mostMore:
        starts === undefined
          ? Number.POSITIVE_INFINITY
          : this.#jobsIn(starts) - waiting - this.#gatheringOf(kind),
    };
  }

  /** For how many jobs there may soon be starts, if they cost as much as others did. */
  #jobsIn(starts: Starts): number {
    const room = starts.room(performance.now());
    return room < 1 ? 0 : Math.max(1, Math.floor(room / this.#meanCost));
  }

  /** Slots without a job wait for what the claim brings, however long that takes. */
  noteClaiming(claim: Promise<unknown>): void {
    for (const lease of this.leases) lease.noteClaiming();
    const noteEnd = () => {
      const nowMs = performance.now();
      const waited = this.leases.filter((lease) => lease.noteClaimed(nowMs));
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
      const lane = this.#options.kinds.has(kind) ? kind : OTHERS;
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
    const { lease, kinds } = this.#options;
    const { kind } = job;
    const all = this.#startsOf([job]);
    if (!all.includes(starts) || !lease.mayBegin || kinds.get(kind)?.mayBegin === false) return false;
    return all.every((other) => other === starts || !other.isRefused(nowMs));
  }

  /** How many slots of a lease it could use. */
  appetite(lease: Lease): number {
    const { lease: whole, kinds, concurrency } = this.#options;
    // What it gets would go unused, and be passed on by each in turn.
    if (!this.#attempts.mayBegin) return lease.running;
    const mostIn = ({ refused, room }: Lease) => (refused ? room : concurrency);
    if (lease !== whole) {
      return Math.max(Math.min(this.#wanted(lease.question.kind, lease), mostIn(whole)), lease.running);
    }
    const held = this.#attempts.waiting.filter(({ job }) => !kinds.has(job.kind)).length;
    let inKinds = 0;
    let wanted = 0;
    for (const [kind, ofKind] of kinds) {
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
    return Math.min(concurrency, this.#waitingOf(kind) + (this.#options.kinds.get(kind)?.running ?? 0));
  }

  /** Whether more jobs are known to be due, and worth a claim as far as rates are known. */
  #hasMore(lane: string | typeof OTHERS): boolean {
    if (!this.#backlog.has(lane)) return false;
    const rates = [this.#ofQueue, lane === OTHERS ? undefined : this.#options.starts.get(lane)];
    return rates.every((starts) => starts === undefined || starts.room(performance.now()) >= 1);
  }

  #waitingOf(kind: string): number {
    return this.#attempts.waiting.filter(({ job }) => job.kind === kind).length;
  }

  #gatheringOf(kind: string): number {
    return this.#attempts.gathering.filter((job) => job.kind === kind).length;
  }
}

/** What jobs cost together: no more than the whole limit, or they would never begin. */
function costOf(starts: Starts, jobs: readonly JobAtGate[]): number {
  const cost = jobs.reduce((sum, { cost = 1 }) => sum + cost, 0);
  return Math.min(cost, starts.limit);
}
