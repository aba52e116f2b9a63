import type { Outcome } from '../../job/outcome.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { onNextTurn } from '../../runtime.ts';
import type { Condition } from '../../time/condition.ts';
import { Bag } from '../base/bag.ts';
import { isPromise } from '../base/is-promise.ts';
import { Turn } from '../base/turn.ts';
import { Attempt, type AttemptEnvironment } from '../run/attempt.ts';
import { executeJob } from '../run/execute-job.ts';
import type { Handler } from '../run/handler.ts';
import { type ConcludedAttempt, Endings, type EndingsOptions } from '../settle/endings.ts';
import type { Leftovers } from '../settle/leftovers.ts';
import { Beginnings, type BeginningsOptions, REFUSED_MS } from './beginnings.ts';
import { Demand } from './demand.ts';
import type { ClaimAtGate, Gate } from './gate.ts';
import { type Gathered, gatheredOf } from './gathered.ts';
import { Patience } from './patience.ts';
import { Prefetch } from './prefetch.ts';
import { NO_RUNS, type Runs } from './runs.ts';
import { isTooLate, missed } from './too-late.ts';
import { Waiting } from './waiting.ts';

export interface AttemptsOptions extends EndingsOptions, Omit<BeginningsOptions, 'tables'> {
  readonly environment: AttemptEnvironment;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  /** Whether peers may take this worker for gone. Then nothing begins. */
  readonly isCutOff: () => boolean;
  /** Where its jobs run one after the other. @default they do not */
  readonly runs?: Runs | undefined;
  /** `undefined` where a job begins as soon as a slot is free. */
  readonly gate?: Gate | undefined;
  /** Signalled when a slot is free, an outcome is written, or the queue is paused or resumed. */
  readonly changes: Pick<Condition, 'signal'>;
}

/** The jobs that a worker holds of one queue: they wait for a slot, run, or are being settled. */
export class Attempts {
  readonly #options: AttemptsOptions;
  readonly #endings: Endings;
  readonly #prefetch = new Prefetch();
  readonly #beginnings: Beginnings;
  readonly #batches: Gathered;
  readonly #runs: Runs;
  readonly #waiting: Waiting;
  readonly demand: Demand;
  /** Those whose handlers run. Two may be of one job: a lost one whose handler goes on, and a newer. */
  readonly #running = new Bag<'placeRunning', Attempt>('placeRunning');
  readonly #turn = new Turn(() => this.beginWaiting());
  #stopped = false;
  #follows = false;
  #paused = false;
  readonly #patience = new Patience(
    () => Math.min(this.#waiting.sinceMs, this.#batches.waitsSinceMs),
    (sinceMs) => this.#losePatience(sinceMs),
  );

  constructor(options: AttemptsOptions) {
    this.#options = options;
    const { environment, runner, holder, events, retries, handlers, concurrency, gate } = options;
    const { runs = NO_RUNS } = options;
    this.#runs = runs;
    this.#endings = new Endings(options);
    const recording = { runner, tables: environment.tables, holder, events, retries };
    this.#beginnings = new Beginnings(recording);
    const [endings, beginnings, prefetch] = [this.#endings, this.#beginnings, this.#prefetch];
    const running = this.#running;
    const mayBegin = () => this.mayBegin && !this.#isCutOff;
    const batches = gatheredOf({
      ...recording,
      handlers,
      gate,
      running,
      endings,
      prefetch,
      mayBegin,
      proceed: () => this.#proceed(),
    });
    this.#batches = batches;
    this.#waiting = new Waiting({ beginnings, batches, runs, gate });
    const waiting = this.#waiting;
    this.demand = new Demand({
      concurrency,
      mayClaim: mayBegin,
      gate,
      prefetch,
      beginnings,
      batches,
      runs,
      waiting,
      running,
      endings,
    });
  }

  get size(): number {
    return this.#waiting.size + this.#running.size + this.#endings.size;
  }

  get jobs(): ClaimedJob[] {
    return [...this.unfinished, ...this.#endings.attempts].map(({ job }) => job);
  }

  get busy(): number {
    return this.#options.concurrency - this.demand.free;
  }

  /**
   * Takes in the jobs of a claim, in their order.
   * @param held which of them are still held, with the fence of each; those behind the others do not begin
   *   before them. @default all
   */
  add(claim: ClaimAtGate, held?: ReadonlyMap<number, number>): void {
    const { handlers, environment, events, gate } = this.#options;
    const { jobs } = claim;
    this.#prefetch.noteClaimed(jobs);
    const attempts = toAttempts(jobs, handlers, environment);
    this.#waiting.add(attempts);
    if (!this.#follows) void this.#follow();
    if (held !== undefined) {
      this.endLost(attempts, held);
      for (const job of jobs) if (held.get(job.id) !== job.fence) events.emit('lost', { job });
    }
    // They were claimed while the worker was told to stop, or the queue to pause.
    if (this.mayBegin) {
      this.beginWaiting();
      this.#giveBackLate();
    } else {
      this.#giveBack(this.#waiting.takeAll());
    }
    gate?.noteClaim(claim);
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
    this.#options.changes.signal();
  }

  resume(): void {
    this.#paused = false;
    this.#options.changes.signal();
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Attempts that every look for requests asks about: they run, or gather for up to a minute. */
  get running(): readonly Attempt[] {
    return [...this.#running, ...this.#batches.waiting];
  }

  /** Gives back those that were told to end before they began. */
  dropUnwanted(): void {
    this.#giveBack(this.#waiting.take(this.#waiting.all.filter(({ reason }) => reason !== undefined)));
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
    return this.#waiting.ahead;
  }

  get gathering(): readonly ClaimedJob[] {
    return this.#batches.waiting.map(({ job }) => job);
  }

  get nextBatch(): readonly ClaimedJob[] {
    return this.#batches.next;
  }

  get free(): number {
    return this.demand.free;
  }

  resumeAfterOutage(): void {
    this.#proceed();
  }

  /**
   * Ends the attempts of jobs that peers may have taken over, since the database has been silent for too
   * long. Once it answers, the jobs that they have not taken are given back, without spending an attempt.
   */
  forsake(): void {
    this.#giveBack(this.#waiting.takeAll());
    for (const attempt of this.#running) attempt.forsake();
    this.#announceChange();
  }

  get #isCutOff(): boolean {
    return this.#options.isCutOff();
  }

  get mayBegin(): boolean {
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

  beginWaiting(): void {
    if (this.#isCutOff) return;
    let ended = false;
    let isKnown = true;
    while (this.demand.free > 0 && !this.#turn.isFull) {
      const attempt = this.#waiting.first;
      if (this.#batches.isBefore(attempt)) this.#batches.begin();
      else if (attempt === undefined) {
        const { blocking } = this.#waiting;
        if (blocking.length === 0) break;
        this.#giveBack(this.#waiting.take(blocking));
        continue;
      } else {
        if (!attempt.mayBegin) break;
        if (isTooLate(attempt)) {
          this.#giveBack(this.#waiting.take(missed(this.#waiting.ahead)));
          continue;
        }
        if (!this.#waiting.begin(attempt)) continue;
        isKnown &&= this.#beginnings.isProven(attempt.job.kind);
        ended = this.#begin(attempt) || ended;
      }
      this.#turn.noteBeginning();
    }
    if (ended) this.#announceChange();
    if (this.#waiting.ahead.length > 0 || this.#batches.isReady) this.#patience.watch();
    // A handler that kills its worker at once does so before the next ones are recorded.
    if (!this.#beginnings.hasUnrecorded) return;
    if (!this.#beginnings.isDue(this.#waiting.unhindered, this.demand.soon)) return;
    if (isKnown) void this.#recordBeginnings();
    else onNextTurn(() => void this.#recordBeginnings());
  }

  async #recordBeginnings(): Promise<void> {
    const { isHurried } = this.#prefetch;
    const result = await this.#beginnings.record(this.#waiting.unhindered, this.demand.soon, isHurried);
    if (result === undefined) return;
    const { lost, locked, refused } = result;
    // Each of these reads all that wait, which may be thousands.
    if (lost.length > 0) this.#giveBack(this.#waiting.dropLost(lost));
    for (const { job } of lost) this.#options.events.emit('lost', { job });
    if (this.mayBegin) {
      if (locked.length > 0) this.#giveBack(this.#waiting.take(locked));
      if (refused !== undefined) this.#giveBack(this.#waiting.take([refused]), REFUSED_MS);
    } else this.#giveBack(this.#waiting.takeAll());
    this.#proceed();
  }

  /** Gives back at once what will not begin in time: other workers may have free slots. */
  #giveBackLate(): void {
    const { late } = this.demand;
    if (late.length === 0) return;
    const taken = this.#waiting.take(late);
    if (taken.length > 0) this.#prefetch.distrust();
    this.#giveBack(taken);
  }

  /** Gives back what has waited since then, with all that is behind it. */
  #losePatience(sinceMs: number): void {
    const { unhindered } = this.#waiting;
    const isStuck = unhindered.some(({ waitsSinceMs }) => waitsSinceMs <= sinceMs);
    if (!isStuck) this.#loseHeldUp(sinceMs);
    const ahead = isStuck ? this.#waiting.ahead : [];
    const taken = this.#waiting.take([...ahead, ...this.#batches.late(sinceMs)]);
    // What is being recorded stays, and is looked at again: that it still waits says nothing new.
    if (taken.length > 0) this.#prefetch.distrust();
    this.#giveBack(taken);
  }

  /** What waits for a slot or a start of its kind holds up no others: only jobs of that kind go with it. */
  #loseHeldUp(sinceMs: number): void {
    const late = this.#waiting.ahead.filter(({ waitsSinceMs }) => waitsSinceMs <= sinceMs);
    const kinds = new Set(late.map(({ job }) => job.kind));
    for (const kind of kinds) this.#prefetch.distrustKind(kind);
    this.#giveBack(this.#waiting.take(this.#waiting.ahead.filter(({ job }) => kinds.has(job.kind))));
  }

  /** Puts jobs back as they were. */
  #giveBack(attempts: readonly Attempt[], delayMs?: number): void {
    for (const attempt of attempts) this.#endings.giveBack(attempt, delayMs);
  }

  /** Calls the handler; answers whether it has ended, as one that waits for nothing does at once. */
  #begin(attempt: Attempt): boolean {
    this.#running.add(attempt);
    const startMs = performance.now();
    const outcome = executeJob(attempt);
    if (isPromise(outcome)) {
      void outcome.then((outcome) => {
        this.#end(attempt, outcome, performance.now() - startMs);
        this.#proceed();
      });
      return false;
    }
    this.#end(attempt, outcome, performance.now() - startMs);
    return true;
  }

  #end(attempt: Attempt, outcome: Outcome, durationMs: number): void {
    // It is among those that end before it leaves those that run: what is among neither is not held.
    this.#endings.conclude(attempt, outcome, durationMs);
    this.#running.delete(attempt);
    this.#options.gate?.end(attempt.job.kind);
    this.#prefetch.note(durationMs, attempt.job.kind);
    this.#beginnings.noteSurvived(attempt);
    // While peers may have its job, the one behind it waits until that is known.
    if (!this.#runs.areServed || !this.#runs.goesOn(outcome) || this.#isCutOff) return;
    attempt.wentOn = true;
    this.#releaseNext(attempt);
  }

  /** Takes in what becomes of those that end, as long as there are jobs here. */
  async #follow(): Promise<void> {
    this.#follows = true;
    try {
      while (this.size > 0) await this.#takeInEnds();
    } finally {
      // The next claim goes on with it, should a part of the worker throw.
      this.#follows = false;
    }
  }

  /** A call for each batch, so that no batch stays in memory while the next one is waited for. */
  async #takeInEnds(): Promise<void> {
    const concluded = await this.#endings.concluded();
    if (this.#runs.areServed) for (const one of concluded) this.#goOnAfter(one);
    this.#announceChange();
  }

  /** What stands behind it begins or is given back, unless it has begun at the end of the handler. */
  #goOnAfter({ attempt, conclusion }: ConcludedAttempt): void {
    const { wentOn } = attempt;
    if (!this.#runs.goesOnAfter(conclusion)) this.#giveBack(this.#waiting.takeBehind(attempt, wentOn));
    else if (!wentOn) this.#releaseNext(attempt);
    if (!wentOn) this.beginWaiting();
  }

  /** The job behind this one may begin. */
  #releaseNext(attempt: Attempt): void {
    this.#waiting.releaseNext(attempt);
    if (!this.mayBegin) this.#giveBack(this.#waiting.takeAll());
  }

  #proceed(): void {
    this.beginWaiting();
    this.#announceChange();
  }

  /** Only when there is something to do about it: a claim to make, or an end to notice. */
  #announceChange(): void {
    if (this.size === 0 || this.demand.size > 0) this.#options.changes.signal();
  }
}

/** The attempts of claimed jobs, in their order. @throws TypeError for a kind that no claim asks for */
function toAttempts(
  jobs: readonly ClaimedJob[],
  handlers: ReadonlyMap<string, Handler>,
  environment: AttemptEnvironment,
): Attempt[] {
  return jobs.map((job) => {
    const handler = handlers.get(job.kind);
    if (handler === undefined) throw new TypeError(`No handler for a claimed job of kind '${job.kind}'`);
    return new Attempt(job, handler, environment);
  });
}
