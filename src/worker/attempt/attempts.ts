import type { ClaimedJob } from '../../queries/claim-jobs.ts';
import type { Beginners } from '../../sql/claim-beginning.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptsOptions } from './attempts-options.ts';
import { Batches } from './batches.ts';
import { Beginnings } from './beginnings.ts';
import { Endings } from './endings.ts';
import { executeJob } from './execute-job.ts';
import type { Leftovers } from './leftovers.ts';
import { Patience } from './patience.ts';
import { Prefetch } from './prefetch.ts';
import { Runs } from './runs.ts';
import { toAttempts } from './to-attempts.ts';
import { Turn } from './turn.ts';

/** Handlers may run this far ahead of the settling. */
const MAX_UNSETTLED = 4_000;
/** After this a job that the database did not let begin is tried again. */
const REFUSED_MS = 10_000;

/** The jobs that a worker holds of one queue: they wait for a slot, run, or are being settled. */
export class Attempts {
  readonly #options: AttemptsOptions;
  readonly #endings: Endings;
  readonly #prefetch = new Prefetch();
  readonly #beginnings: Beginnings;
  readonly #batches: Batches;
  readonly #runs: Runs;
  /** Claimed ahead, not begun. */
  #waiting: Attempt[] = [];
  /** Two of them may be of one job: a lost one whose handler goes on, and a newer. */
  readonly #running = new Set<Attempt>();
  readonly #turn = new Turn(() => this.beginWaiting());
  #stopped = false;
  #paused = false;
  readonly #patience = new Patience(() => this.#losePatience());

  constructor(options: AttemptsOptions) {
    this.#options = options;
    const { tables } = options.environment;
    this.#endings = new Endings(options, () => this.#announceChange());
    this.#beginnings = new Beginnings({ ...options, tables });
    this.#runs = new Runs(options.serial);
    this.#batches = new Batches({
      ...options,
      tables,
      running: this.#running,
      endings: this.#endings,
      prefetch: this.#prefetch,
      mayBegin: () => !this.#stopped && !this.#paused,
      onChange: () => this.#proceed(),
    });
  }

  get size(): number {
    const waiting = this.#waiting.length + this.#runs.size + this.#batches.gathered;
    return waiting + this.#running.size + this.#endings.size;
  }

  get jobs(): ClaimedJob[] {
    return [...this.unfinished, ...this.#endings.attempts].map(({ job }) => job);
  }

  /** How many jobs to claim now; 0 when there is enough to do. */
  get demand(): number {
    const slots = this.#slots;
    if (this.#paused) return 0;
    if (this.#endings.size >= MAX_UNSETTLED || this.#beginnings.isFailing) return 0;
    const most = this.#prefetch.size(slots, this.#batches.jobsPerSlot);
    const ahead = this.#beginnings.limit(most, this.#prefetch.soon(slots));
    const waiting = this.#waiting.length - (this.#options.limiter?.heldUp ?? 0);
    // Refilled when half empty, so that a claim is worth its round trip.
    if (waiting > ahead / 2) return 0;
    return this.#batches.demand(this.#freeOf(slots), ahead) - waiting;
  }

  /** How many jobs of one kind to claim now, where that has a limit of its own. */
  demandOf(kind: string): number {
    const { slots, held } = this.#options.limiter?.ofKind(kind) ?? { slots: 0, held: 0 };
    return Math.min(this.demand, slots + this.#prefetch.size(slots) - held);
  }

  /** How many jobs of a group to claim at once, where they run one after the other. */
  get run(): number | undefined {
    return this.#runs.areServed ? this.#prefetch.run() : undefined;
  }

  get beginning(): 0 | 1 | Beginners {
    // Jobs of a batch handler begin when they have gathered.
    if (this.#batches.serves) return 0;
    return this.#beginnings.ofClaim(this.#waiting, this.#running, this.#slots, this.#soon);
  }

  /** For how many handlers there may soon be room. */
  get #slots(): number {
    return this.#options.limiter?.slots ?? this.#options.concurrency;
  }

  /** How many slots of these are free. */
  #freeOf(slots: number): number {
    return slots - this.#running.size + this.#batches.sharing;
  }

  /** How many of those that wait, or are claimed now, will be called soon. */
  get #soon(): number {
    return this.#freeOf(this.#slots) + this.#prefetch.soon(this.#slots);
  }

  /** Takes in claimed jobs, in their order. */
  add(jobs: readonly ClaimedJob[]): void {
    const { handlers, environment } = this.#options;
    this.#prefetch.noteClaimed(jobs.map(({ payloadBytes }) => payloadBytes));
    const attempts = this.#batches.add(this.#runs.add(toAttempts(jobs, handlers, environment)));
    this.#waiting.push(...attempts);
    this.#beginnings.add(attempts);
    // They were claimed while the worker was told to stop, or the queue to pause.
    if (this.#stopped || this.#paused) this.#giveBackAll();
    else this.beginWaiting();
  }

  /** Begins nothing more, and gives back what waits. What runs goes on. */
  stop(): void {
    this.#stopped = true;
    this.#endings.stop();
    this.#patience.stop();
    this.#beginnings.stop();
    this.#batches.stop();
    this.#giveBackAll();
  }

  /** Puts back what is still held after `stop`, even if its beginning is still being recorded. */
  async giveBackLeftovers(...[options, tooLate]: Parameters<Leftovers['giveBack']>): Promise<void> {
    const unbegun = [...this.#waiting, ...this.#batches.beginning, ...this.#runs.standing];
    await this.#endings.giveBackLeftovers(unbegun, options, tooLate);
  }

  /** Begins nothing more until `resume`, and gives back what waits. */
  pause(): void {
    this.#paused = true;
    this.#giveBackAll();
    this.#options.onChange();
  }

  resume(): void {
    this.#paused = false;
    this.#options.onChange();
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Those that somebody may ask to end: they run, or gather for a batch, which may take a minute. */
  get running(): readonly Attempt[] {
    return [...this.#running, ...this.#batches.waiting];
  }

  /** Gives back those that gather for a batch and were told to end. */
  dropUnwanted(): void {
    this.#giveBack(this.#batches.waiting.filter(({ reason }) => reason !== undefined));
  }

  /** Nothing more is due, so no batch waits for others. */
  flush(): void {
    this.#batches.flush();
    this.beginWaiting();
  }

  interrupt(reason: Error): void {
    for (const attempt of this.#running) attempt.interrupt(reason);
  }

  get waiting(): readonly Attempt[] {
    return this.#waiting;
  }

  get #allWaiting(): readonly Attempt[] {
    return [...this.#waiting, ...this.#batches.waiting];
  }

  get unfinished(): readonly Attempt[] {
    return [...this.#allWaiting, ...this.#running, ...this.#runs.standing];
  }

  /** Ends those of `asked` whose job and fence are not in `held`, which says nothing of later claims. */
  endLost(asked: readonly Attempt[], held: ReadonlyMap<number, number>): void {
    const lost = asked.filter(({ job }) => held.get(job.id) !== job.fence);
    this.#runs.drop(new Set(lost));
    const waited = new Set(this.#waiting);
    this.#drop(lost);
    for (const attempt of lost) if (waited.has(attempt)) this.#goOn(attempt);
    for (const attempt of lost) if (this.#running.has(attempt)) attempt.lose();
    this.#announceChange();
  }

  /** Begins what has a free slot. */
  beginWaiting(): void {
    const { limiter, concurrency } = this.#options;
    let began = false;
    let isKnown = true;
    while (this.#freeOf(concurrency) > 0 && !this.#turn.isFull) {
      const at = limiter === undefined ? 0 : this.#waiting.findIndex(({ job }) => limiter.mayBegin(job.kind));
      const attempt = this.#waiting[at];
      if (this.#batches.isBefore(attempt)) this.#batches.begin();
      else {
        if (attempt === undefined || !attempt.mayBegin) break;
        if (at === 0) this.#waiting.shift();
        else this.#waiting.splice(at, 1);
        limiter?.begin(attempt.job.kind);
        this.#beginnings.delete(attempt);
        isKnown &&= this.#beginnings.isProven(attempt.job.kind);
        this.#running.add(attempt);
        void this.#execute(attempt);
      }
      began = true;
      this.#turn.noteBeginning();
    }
    if (began) this.#patience.noteBeginning();
    if (this.#waiting.length > 0 || this.#batches.isReady) this.#patience.watch();
    // A handler that kills its worker at once does so before the next ones are recorded.
    if (!this.#beginnings.isDue(this.#soon)) return;
    if (isKnown) void this.#recordBeginnings();
    else setImmediate(() => void this.#recordBeginnings());
  }

  async #recordBeginnings(): Promise<void> {
    const result = await this.#beginnings.record(this.#waiting, this.#soon);
    if (result === undefined) return;
    const { lost, locked, refused } = result;
    this.#drop(lost);
    for (const attempt of lost) this.#goOn(attempt);
    for (const { job } of lost) this.#options.events.emit('lost', { job });
    if (this.#stopped || this.#paused) this.#giveBackAll();
    else {
      this.#giveBack(locked);
      if (refused !== undefined) this.#giveBack([refused], REFUSED_MS);
    }
    this.#proceed();
  }

  #losePatience(): void {
    const late = [...this.#waiting, ...this.#batches.late];
    if (late.length > 0) this.#prefetch.distrust();
    this.#giveBack(late);
  }

  /** Puts waiting jobs back as they were. Those that are being recorded follow later. */
  #giveBack(waiting: readonly Attempt[] = this.#allWaiting, delayMs?: number): void {
    const back = waiting.filter(({ recording }) => recording !== 'recording');
    this.#drop(back);
    // Those behind them would begin before them.
    const behind = back.flatMap((attempt) => this.#runs.end(attempt));
    for (const attempt of [...back, ...behind]) this.#endings.giveBack(attempt, delayMs);
  }

  /** Also those that stand behind one that runs. */
  #giveBackAll(): void {
    this.#giveBack();
    for (const attempt of this.#runs.takeAll()) this.#endings.giveBack(attempt);
  }

  #drop(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#beginnings.delete(attempt);
    const dropped = new Set(attempts);
    this.#waiting = this.#waiting.filter((attempt) => !dropped.has(attempt));
    this.#batches.drop(dropped);
  }

  async #execute(attempt: Attempt): Promise<void> {
    const startMs = performance.now();
    const outcome = await executeJob(attempt);
    const durationMs = performance.now() - startMs;
    this.#running.delete(attempt);
    this.#options.limiter?.end(attempt.job.kind);
    this.#endings.add(attempt);
    this.#prefetch.note(durationMs);
    this.#beginnings.noteEnd(attempt);
    const goesOn = this.#runs.goesOn(outcome);
    if (goesOn) this.#goOn(attempt);
    this.#proceed();
    const isOver = await this.#endings.conclude(attempt, outcome, durationMs);
    if (goesOn) return;
    if (this.#runs.goesOnAfter(isOver)) this.#goOn(attempt);
    else for (const behind of this.#runs.end(attempt)) this.#endings.giveBack(behind);
    if (this.#runs.areServed) this.#proceed();
  }

  /** Lets the one behind this attempt wait for a slot, first of all. */
  #goOn(attempt: Attempt): void {
    const next = this.#runs.next(attempt);
    if (next === undefined) return;
    this.#waiting.unshift(next);
    this.#beginnings.add([next]);
    if (this.#stopped || this.#paused) this.#giveBackAll();
  }

  #proceed(): void {
    this.beginWaiting();
    this.#announceChange();
  }

  /** Only when there is something to do about it: a claim to make, or an end to notice. */
  #announceChange(): void {
    if (this.size === 0 || this.demand > 0) this.#options.onChange();
  }
}
