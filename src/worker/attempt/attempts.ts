import type { ClaimedJob } from '../../queries/claim-jobs.ts';
import { onNextTurn } from '../../runtime.ts';
import type { Beginners } from '../../sql/claim-beginning.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptsOptions } from './attempts-options.ts';
import { Batches, REFUSED_MS } from './batches.ts';
import { Beginnings } from './beginnings.ts';
import { Demand } from './demand.ts';
import { Endings } from './endings.ts';
import { executeJob } from './execute-job.ts';
import type { Leftovers } from './leftovers.ts';
import { Patience } from './patience.ts';
import { Prefetch } from './prefetch.ts';
import { Runs } from './runs.ts';
import { toAttempts } from './to-attempts.ts';
import { Turn } from './turn.ts';
import { Waiting } from './waiting.ts';

/** The jobs that a worker holds of one queue: they wait for a slot, run, or are being settled. */
export class Attempts {
  readonly #options: AttemptsOptions;
  readonly #endings: Endings;
  readonly #prefetch = new Prefetch();
  readonly #beginnings: Beginnings;
  readonly #batches: Batches;
  readonly #runs: Runs;
  readonly #waiting: Waiting;
  readonly #demand: Demand;
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
    const shared = { tables, running: this.#running, endings: this.#endings, prefetch: this.#prefetch };
    this.#batches = new Batches({
      ...options,
      ...shared,
      mayBegin: () => this.#mayBegin,
      onChange: () => this.#proceed(),
    });
    const parts = { ...options, beginnings: this.#beginnings, batches: this.#batches, runs: this.#runs };
    this.#waiting = new Waiting(parts);
    this.#demand = new Demand({ ...parts, ...shared, waiting: this.#waiting });
  }

  get size(): number {
    return this.#waiting.size + this.#running.size + this.#endings.size;
  }

  get jobs(): ClaimedJob[] {
    return [...this.unfinished, ...this.#endings.attempts].map(({ job }) => job);
  }

  get busy(): number {
    return this.#options.concurrency - this.#demand.free;
  }

  /** How many jobs to claim now; 0 when there is enough to do. */
  get demand(): number {
    return this.#paused ? 0 : this.#demand.size;
  }

  /** How many jobs of one kind to claim now, where that has a limit of its own. */
  demandOf(kind: string): number {
    return this.#paused ? 0 : this.#demand.ofKind(kind);
  }

  /** How many jobs of a group to claim at once, where they run one after the other. */
  get run(): number | undefined {
    return this.#runs.areServed ? this.#prefetch.run() : undefined;
  }

  get beginning(): 0 | 1 | Beginners {
    return this.#demand.beginning;
  }

  /** Takes in claimed jobs, in their order. */
  add(jobs: readonly ClaimedJob[]): void {
    const { handlers, environment } = this.#options;
    this.#prefetch.noteClaimed(jobs.map(({ payloadBytes }) => payloadBytes));
    this.#waiting.add(toAttempts(jobs, handlers, environment));
    // They were claimed while the worker was told to stop, or the queue to pause.
    if (this.#mayBegin) this.beginWaiting();
    else this.#giveBack(this.#waiting.takeAll());
  }

  /** Begins nothing more, and gives back what waits. What runs goes on. */
  stop(): void {
    this.#stopped = true;
    this.#endings.stop();
    this.#patience.stop();
    this.#beginnings.stop();
    this.#batches.stop();
    this.#giveBack(this.#waiting.takeAll());
  }

  /** Puts back what is still held after `stop`, even if its beginning is still being recorded. */
  async giveBackLeftovers(...[options, tooLate]: Parameters<Leftovers['giveBack']>): Promise<void> {
    await this.#endings.giveBackLeftovers(this.#waiting.unbegun, options, tooLate);
  }

  /** Begins nothing more until `resume`, and gives back what waits. */
  pause(): void {
    this.#paused = true;
    this.#giveBack(this.#waiting.takeAll());
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
    this.#giveBack(this.#waiting.take(this.#batches.waiting.filter(({ reason }) => reason !== undefined)));
  }

  /** Nothing more is due, so no batch waits for others. */
  flush(): void {
    this.#batches.flush();
    this.beginWaiting();
  }

  interrupt(reason: Error): void {
    for (const attempt of this.#running) attempt.interrupt(reason);
  }

  /** Those that wait for a slot of their own, in their order. */
  get waiting(): readonly Attempt[] {
    return this.#waiting.ahead;
  }

  get #mayBegin(): boolean {
    return !this.#stopped && !this.#paused;
  }

  get unfinished(): readonly Attempt[] {
    return [...this.#waiting.all, ...this.#running, ...this.#runs.standing];
  }

  /** Ends those of `asked` whose job and fence are not in `held`, which says nothing of later claims. */
  endLost(asked: readonly Attempt[], held: ReadonlyMap<number, number>): void {
    const lost = asked.filter(({ job }) => held.get(job.id) !== job.fence);
    this.#giveBack(this.#waiting.dropLost(lost));
    for (const attempt of lost) if (this.#running.has(attempt)) attempt.lose();
    this.#announceChange();
  }

  /** Begins what has a free slot. */
  beginWaiting(): void {
    let began = false;
    let isKnown = true;
    while (this.#demand.free > 0 && !this.#turn.isFull) {
      const attempt = this.#waiting.first;
      if (this.#batches.isBefore(attempt)) this.#batches.begin();
      else {
        if (attempt === undefined || !attempt.mayBegin) break;
        this.#waiting.begin(attempt);
        isKnown &&= this.#beginnings.isProven(attempt.job.kind);
        this.#running.add(attempt);
        void this.#execute(attempt);
      }
      began = true;
      this.#turn.noteBeginning();
    }
    if (began) this.#patience.noteBeginning();
    if (this.waiting.length > 0 || this.#batches.isReady) this.#patience.watch();
    // A handler that kills its worker at once does so before the next ones are recorded.
    if (!this.#beginnings.hasUnrecorded || !this.#beginnings.isDue(this.#demand.soon)) return;
    if (isKnown) void this.#recordBeginnings();
    else onNextTurn(() => void this.#recordBeginnings());
  }

  async #recordBeginnings(): Promise<void> {
    const result = await this.#beginnings.record(this.waiting, this.#demand.soon);
    if (result === undefined) return;
    const { lost, locked, refused } = result;
    this.#giveBack(this.#waiting.dropLost(lost));
    for (const { job } of lost) this.#options.events.emit('lost', { job });
    if (this.#mayBegin) {
      this.#giveBack(this.#waiting.take(locked));
      if (refused !== undefined) this.#giveBack(this.#waiting.take([refused]), REFUSED_MS);
    } else this.#giveBack(this.#waiting.takeAll());
    this.#proceed();
  }

  #losePatience(): void {
    const late = [...this.waiting, ...this.#batches.late];
    if (late.length > 0) this.#prefetch.distrust();
    this.#giveBack(this.#waiting.take(late));
  }

  /** Puts jobs back as they were. */
  #giveBack(attempts: readonly Attempt[], delayMs?: number): void {
    for (const attempt of attempts) this.#endings.giveBack(attempt, delayMs);
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
    const { areServed } = this.#runs;
    const goesOn = areServed && this.#runs.goesOn(outcome);
    if (goesOn) this.#goOn(attempt);
    this.#proceed();
    const conclusion = await this.#endings.conclude(attempt, outcome, durationMs);
    if (!areServed) return;
    if (!this.#runs.goesOnAfter(conclusion)) this.#giveBack(this.#waiting.takeBehind(attempt, goesOn));
    else if (!goesOn) this.#goOn(attempt);
    if (!goesOn) this.#proceed();
  }

  #goOn(attempt: Attempt): void {
    this.#waiting.goOn(attempt);
    if (!this.#mayBegin) this.#giveBack(this.#waiting.takeAll());
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
