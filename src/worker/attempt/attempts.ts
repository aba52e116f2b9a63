import { LeaseLostError } from '../../errors.ts';
import type { ClaimedJob } from '../../queries/claim-jobs.ts';
import type { Beginners } from '../../sql/claim-beginning.ts';
import { Attempt } from './attempt.ts';
import type { AttemptsOptions } from './attempts-options.ts';
import { Beginnings } from './beginnings.ts';
import { type ConcludeOptions, conclude, giveBack } from './conclude.ts';
import { executeJob } from './execute-job.ts';
import { Patience } from './patience.ts';
import { Prefetch } from './prefetch.ts';
import { Turn } from './turn.ts';
import { Unwritten } from './unwritten.ts';

/** Handlers may run this far ahead of the settling. */
const MAX_UNSETTLED = 4_000;
/** After this a job that the database did not let begin is tried again. */
const REFUSED_MS = 10_000;

/** The jobs that a worker holds of one queue: they wait for a slot, run, or are being settled. */
export class Attempts {
  readonly #options: AttemptsOptions;
  readonly #conclude: ConcludeOptions;
  readonly #leaving = new AbortController();
  readonly #prefetch = new Prefetch();
  readonly #beginnings: Beginnings;
  /** Claimed ahead, not begun. */
  #waiting: Attempt[] = [];
  readonly #unwritten = new Unwritten();
  /** Two of them may be of one job: a lost one whose handler goes on, and a newer. */
  readonly #running = new Set<Attempt>();
  /** Those whose outcome is not written yet. */
  readonly #unsettled = new Set<Attempt>();
  readonly #turn = new Turn(() => this.beginWaiting());
  #stopped = false;
  #paused = false;
  readonly #patience = new Patience(() => this.#losePatience());

  constructor(options: AttemptsOptions) {
    this.#options = options;
    const leave = this.#leaving.signal;
    this.#conclude = { ...options, leave, onUnwritten: (attempt) => this.#unwritten.add(attempt) };
    if (!options.persistent) this.#leaving.abort();
    this.#beginnings = new Beginnings({ ...options, tables: options.environment.tables });
  }

  get size(): number {
    return this.#waiting.length + this.#running.size + this.#unsettled.size;
  }

  get jobs(): ClaimedJob[] {
    return [...this.unfinished, ...this.#unsettled].map(({ job }) => job);
  }

  /** How many jobs to claim now; 0 when there is enough to do. */
  get demand(): number {
    const concurrency = this.#slots;
    if (this.#paused) return 0;
    if (this.#unsettled.size >= MAX_UNSETTLED || this.#beginnings.isFailing) return 0;
    const ahead = this.#beginnings.limit(this.#prefetch.size(concurrency), this.#prefetch.soon(concurrency));
    const waiting = this.#waiting.length - (this.#options.limiter?.heldUp ?? 0);
    // Refilled when half empty, so that a claim is worth its round trip.
    if (waiting > ahead / 2) return 0;
    return concurrency + ahead - this.#running.size - waiting;
  }

  get beginning(): 0 | 1 | Beginners {
    return this.#beginnings.ofClaim(this.#waiting, this.#running, this.#slots, this.#soon);
  }

  /** How many jobs of one kind to claim now, where that has a limit of its own. */
  demandOf(kind: string): number {
    const { slots, held } = this.#options.limiter?.ofKind(kind) ?? { slots: 0, held: 0 };
    return Math.min(this.demand, slots + this.#prefetch.size(slots) - held);
  }

  get #slots(): number {
    return this.#options.limiter?.slots ?? this.#options.concurrency;
  }

  /** How many of those that wait, or are claimed now, will be called soon. */
  get #soon(): number {
    const concurrency = this.#slots;
    return concurrency - this.#running.size + this.#prefetch.soon(concurrency);
  }

  /** Takes in claimed jobs, in their order. */
  add(jobs: readonly ClaimedJob[]): void {
    const { handlers, environment } = this.#options;
    this.#prefetch.noteClaimed(jobs.map(({ payloadBytes }) => payloadBytes));
    const attempts = jobs.map((job) => {
      const handler = handlers.get(job.kind);
      if (handler === undefined) throw new TypeError(`No handler for a claimed job of kind '${job.kind}'`);
      return new Attempt(job, handler, environment);
    });
    this.#waiting.push(...attempts);
    this.#beginnings.add(attempts);
    // They were claimed while the worker was told to stop, or the queue to pause.
    if (this.#stopped || this.#paused) this.#giveBack();
    else this.beginWaiting();
  }

  /** Begins nothing more, and gives back what waits. What runs goes on. */
  stop(): void {
    this.#stopped = true;
    this.#leaving.abort();
    this.#patience.stop();
    this.#beginnings.stop();
    this.#giveBack();
  }

  /** Puts back what is still held after `stop`, even if its beginning is still being recorded. */
  async giveBackUnwritten(...[options, tooLate]: Parameters<Unwritten['giveBack']>): Promise<void> {
    for (const attempt of this.#waiting) this.#unwritten.add(attempt);
    await this.#unwritten.giveBack(options, tooLate);
  }

  /** Begins nothing more until `resume`, and gives back what waits. */
  pause(): void {
    this.#paused = true;
    this.#giveBack();
    this.#options.onChange();
  }

  resume(): void {
    this.#paused = false;
    this.#options.onChange();
  }

  get paused(): boolean {
    return this.#paused;
  }

  get running(): readonly Attempt[] {
    return [...this.#running];
  }

  interrupt(reason: Error): void {
    for (const attempt of this.#running) attempt.interrupt(reason);
  }

  get waiting(): readonly Attempt[] {
    return this.#waiting;
  }

  get unfinished(): readonly Attempt[] {
    return [...this.#waiting, ...this.#running];
  }

  /** Ends those of `asked` whose job and fence are not in `held`, which says nothing of later claims. */
  endLost(asked: readonly Attempt[], held: ReadonlyMap<number, number>): void {
    const lost = asked.filter(({ job }) => held.get(job.id) !== job.fence);
    this.#drop(lost);
    for (const attempt of lost) {
      // One that has completed its job, and goes on, has lost nothing.
      if (!this.#running.has(attempt) || !attempt.open) continue;
      attempt.end(new LeaseLostError(attempt.job.kind, attempt.job.id));
    }
    this.#announceChange();
  }

  /** Begins what has a free slot. */
  beginWaiting(): void {
    const { limiter } = this.#options;
    let began = false;
    let isKnown = true;
    while (this.#running.size < this.#options.concurrency && !this.#turn.isFull) {
      const at = limiter === undefined ? 0 : this.#waiting.findIndex(({ job }) => limiter.mayBegin(job.kind));
      const attempt = this.#waiting[at];
      if (attempt === undefined || !attempt.mayBegin) break;
      if (at === 0) this.#waiting.shift();
      else this.#waiting.splice(at, 1);
      limiter?.begin(attempt.job.kind);
      this.#beginnings.delete(attempt);
      began = true;
      isKnown &&= this.#beginnings.isProven(attempt.job.kind);
      this.#turn.noteBeginning();
      this.#running.add(attempt);
      void this.#execute(attempt);
    }
    if (began) this.#patience.noteBeginning();
    if (this.#waiting.length === 0) return;
    this.#patience.watch();
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
    for (const { job } of lost) this.#options.events.emit('lost', { job });
    if (this.#stopped || this.#paused) this.#giveBack();
    else {
      this.#giveBack(locked);
      if (refused !== undefined) this.#giveBack([refused], REFUSED_MS);
    }
    this.beginWaiting();
    this.#announceChange();
  }

  #losePatience(): void {
    if (this.#waiting.length > 0) this.#prefetch.distrust();
    this.#giveBack();
  }

  /** Puts waiting jobs back as they were. Those that are being recorded follow later. */
  #giveBack(waiting: readonly Attempt[] = this.#waiting, delayMs?: number): void {
    const back = waiting.filter(({ recording }) => recording !== 'recording');
    this.#drop(back);
    for (const attempt of back) {
      this.#unsettled.add(attempt);
      void giveBack(this.#conclude, attempt, delayMs).then(() => this.#forget(attempt));
    }
  }

  #drop(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#beginnings.delete(attempt);
    const dropped = new Set(attempts);
    this.#waiting = this.#waiting.filter((attempt) => !dropped.has(attempt));
  }

  async #execute(attempt: Attempt): Promise<void> {
    const startMs = performance.now();
    const outcome = await executeJob(attempt);
    const durationMs = performance.now() - startMs;
    this.#running.delete(attempt);
    this.#options.limiter?.end(attempt.job.kind);
    this.#unsettled.add(attempt);
    this.#prefetch.note(durationMs);
    this.#beginnings.noteEnd(attempt);
    this.beginWaiting();
    this.#announceChange();
    await conclude(this.#conclude, attempt, outcome, durationMs);
    this.#forget(attempt);
  }

  #forget(attempt: Attempt): void {
    this.#unsettled.delete(attempt);
    this.#announceChange();
  }

  /** Only when there is something to do about it: a claim to make, or an end to notice. */
  #announceChange(): void {
    if (this.size === 0 || this.demand > 0) this.#options.onChange();
  }
}
