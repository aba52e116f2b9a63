import type { Runner } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import { Condition } from '../../time/condition.ts';
import { jitter } from '../../time/jitter.ts';
import type { Retries } from '../../time/retries.ts';
import type { WorkerEmitter } from '../base/events.ts';
import type { Until } from '../base/until.ts';
import { Attempts } from '../begin/attempts.ts';
import type { Gate } from '../begin/gate.ts';
import type { AttemptEnvironment } from '../run/attempt.ts';
import type { Handler } from '../run/handler.ts';
import { Settler } from '../settle/settle.ts';
import type { WorkerRunner } from '../statements/statements.ts';
import { Bell } from './bell.ts';
import type { ClaimGroups, GroupClaims } from './claim-groups.ts';
import { ClaimTries } from './claim-tries.ts';
import { Claims, type QueueClaims } from './claims.ts';
import { Holdings } from './holdings.ts';
import { HotPolling } from './hot-polling.ts';
import { Lanes, type PutBackJob } from './lanes.ts';
import { type Next, Pace } from './pace.ts';
import type { Sweeper } from './sweeper.ts';
import type { IdleQueue, Watch } from './watch.ts';

const MAX_FIRST_ERROR_PAUSE_MS = 100;
const MAX_ERROR_PAUSE_MS = 5_000;
/** What is due later, the watch sees in time. */
const MAX_EXPECTED_MS = 2_000;

/** What the loop of one queue works with. */
export interface ClaimLoopOptions {
  readonly environment: AttemptEnvironment & { readonly workerId: number };
  /** Runs the claims, and what begins jobs. */
  readonly claimRunner: WorkerRunner;
  readonly settleRunner: WorkerRunner;
  /** Runs what is seldom asked: what is still held, and what became of a job. */
  readonly questionRunner: Runner;
  /** Whether peers may take this worker for gone: until it has an answer, nothing is claimed or begins. */
  readonly isCutOff: () => boolean;
  readonly queue: string;
  readonly kinds: readonly string[];
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  /** Where its jobs are in groups. */
  readonly groups?: ClaimGroups | undefined;
  /** How long a job is due until it counts as one priority better; `undefined`: that never changes. */
  readonly agingMs: number | undefined;
  /** `undefined` where a job begins as soon as a slot is free. */
  readonly gate: Gate | undefined;
  readonly pollIntervalMs: number;
  readonly events: WorkerEmitter;
  /** `'empty'`: it ends when no job is due and none is held. */
  readonly until: Until;
  /** What wakes the loop when its queue is idle; `undefined` where it ends then. */
  readonly watch: Watch | undefined;
  readonly sweeper: Sweeper;
  readonly retries: Retries;
  /** Aborted when settling must no longer be repeated. */
  readonly giveUp: AbortSignal;
}

/**
 * One queue in one process: claims as many due jobs as its attempts have use for, in one loop for all slots,
 * so that one claim serves many. While claims come back full it does not sleep. After one that came back
 * short it looks again every few milliseconds, then less and less often; at last the queue is idle, and the
 * watch or a notification wakes it. A claim always starts at the floors: the sweeper finds what lies behind
 * them, to be claimed by id.
 */
export class ClaimLoop implements IdleQueue {
  readonly #options: ClaimLoopOptions;
  readonly attempts: Attempts;
  readonly lanes: Lanes;
  readonly #tries: ClaimTries;
  readonly #claims: QueueClaims;
  /** The same, where the jobs are in groups. */
  readonly #groupClaims: GroupClaims | undefined;
  readonly holdings: Holdings;
  readonly #hotPolling: HotPolling;
  readonly #pace: Pace;
  /** A slot is free, an outcome is written, the queue is paused or resumed, or the bell rings. */
  readonly #changes = new Condition();
  readonly #stopping = new AbortController();
  readonly #bell = new Bell(this.#changes);
  /** Whether a slot has become free, or an outcome was written, since the last claim was sent. */
  #hasChanged = false;
  /** Whether the queue was announced idle, and no job was found since. */
  #announced = false;
  /** The last claim has left out kinds that may not begin: another would not say whether jobs are left. */
  #leftOut = false;
  /** The loop rests until it is woken, or in a drain until its next poll. */
  #atRest = false;
  #hasSweptFirst = false;
  #mayClaim = false;
  /** How often in a row it could not give back what it does not know of, and when it tries again. */
  #releaseFailures = 0;
  #releaseAgainMs = Number.NEGATIVE_INFINITY;

  constructor(options: ClaimLoopOptions) {
    this.#options = options;
    this.#hotPolling = new HotPolling(options.pollIntervalMs);
    this.#pace = new Pace(this.#hotPolling, options);
    // What these hand each other is not called before all are made.
    this.attempts = this.#makeAttempts();
    this.#tries = this.#makeTries();
    this.lanes = this.#makeLanes();
    this.#groupClaims = this.#makeGroupClaims();
    this.#claims = this.#groupClaims ?? this.#makeClaims();
    options.gate?.serve(this.attempts, () => this.#changes.signal());
    this.holdings = this.#makeHoldings();
  }

  get queue(): string {
    return this.#options.queue;
  }

  get groups(): ClaimGroups | undefined {
    return this.#options.groups;
  }

  get lowestFloorMs(): number {
    return this.lanes.lowestFloorMs;
  }

  wake(): void {
    this.#bell.ring();
  }

  /** Claims at once, and stays hot unless the `othersNotify`. */
  notify(othersNotify: boolean): void {
    // Where jobs wait for room, another worker may make it, which sends no notification.
    const all = othersNotify && !this.#awaitsEnds && !this.#options.gate;
    this.#pace.noteTold(performance.now(), all);
    this.#groupClaims?.noteTold();
    this.#bell.tell(all);
  }

  /** Looks without delay for jobs that have become due behind the floors: a drain's last pass missed them. */
  sweepSoon(): void {
    this.#pace.begin();
    this.lanes.urge('newest first');
    this.#groupClaims?.seekFreed();
    if (this.#groupClaims !== undefined) this.wake();
  }

  noteNothing(databaseMs: number, endMs: number): void {
    this.lanes.noteNothing(databaseMs, endMs);
    if (!this.#mayClaim) return;
    this.#sweepFirst();
    if (this.attempts.size === 0) this.#announceIdle();
  }

  /**
   * Claims until `stop` is called (or nothing is left, without a watch); returns how many jobs. Before
   * `mayClaim` is fulfilled it only looks at the queue. Never rejects.
   */
  async run(mayClaim: Promise<unknown>): Promise<number> {
    const { queue, events, until, watch, retries } = this.#options;
    let failures = 0;
    let total = 0;
    this.#pace.begin();
    // One look for all queues tells which of them are worth a claim.
    watch?.add(this, true);
    await mayClaim;
    this.#mayClaim = true;
    // What looked empty then is looked at again.
    if (!this.#bell.signalled) watch?.add(this, true);
    if (until === 'stopped') await this.#sleep();
    watch?.remove(this);
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#releaseUnknown();
        if (this.#stopping.signal.aborted) break;
        const result = await this.#claim();
        if (result === undefined) {
          // A drain does not wait for the end of a pause.
          if (until === 'empty' && this.attempts.paused && this.attempts.size === 0) return total;
          await this.#changes.wait(this.#releaseInMs);
          continue;
        }
        const { claimed, next, failure } = result;
        total += claimed;
        if (failure !== undefined) throw failure;
        failures = 0;
        if (next !== 'over' || this.holdings.mayHoldMore) await this.#proceed(next);
        else if (!(await this.holdings.releaseRefused(this.#stopping.signal))) return total;
      } catch (error) {
        events.emit('error', { error, during: `claiming from '${queue}'` });
        if (await retries.sleep(this.#pauseMs(failures++), this.#stopping.signal)) failures = 0;
      }
    }
    return total;
  }

  /** Never rejects: what fails here must not keep the claims back. */
  async #releaseUnknown(): Promise<void> {
    if (performance.now() < this.#releaseAgainMs) return;
    try {
      await this.holdings.releaseUnknown();
      this.#releaseFailures = 0;
    } catch (error) {
      this.#options.events.emit('error', { error, during: `giving back jobs of '${this.queue}'` });
      this.#releaseAgainMs = performance.now() + this.#pauseMs(this.#releaseFailures++);
    }
  }

  get #releaseInMs(): number {
    return Math.max(this.holdings.releaseInMs, this.#releaseAgainMs - performance.now());
  }

  #pauseMs(failures: number): number {
    const firstMs = Math.min(this.#options.pollIntervalMs, MAX_FIRST_ERROR_PAUSE_MS);
    return jitter(Math.min(firstMs * 2 ** failures, MAX_ERROR_PAUSE_MS));
  }

  /** Claims no more, and gives back what has not begun. Handlers go on. */
  stop(): void {
    this.#stopping.abort();
    this.attempts.stop();
    this.#bell.ring();
  }

  /** Resolves when no handler runs and every outcome is written. */
  async finished(): Promise<void> {
    while (this.attempts.size > 0) await this.#changes.wait();
  }

  /** The database answers again: what has waited for that begins. */
  resumeAfterOutage(): void {
    this.attempts.resumeAfterOutage();
    if (this.#releaseFailures > 0) {
      this.#releaseFailures = 0;
      this.#releaseAgainMs = Number.NEGATIVE_INFINITY;
      this.wake();
    }
    this.#changes.signal();
  }

  /** The server may have forgotten how jobs ended: see {@link Holdings.noteOtherServer}. */
  noteOtherServer(): void {
    this.holdings.noteOtherServer();
  }

  /** Ends the attempts of jobs that peers may have taken over: see `Attempts.forsake`. */
  forsake(): void {
    this.attempts.forsake();
  }

  interrupt(reason: Error): void {
    this.attempts.interrupt(reason);
  }

  /** `undefined` where there is no use for more jobs. */
  async #claim(): Promise<{ claimed: number; next: Next; failure?: unknown } | undefined> {
    const { queue, events, gate, until } = this.#options;
    const startMs = performance.now();
    const quiet = this.attempts.size === 0;
    const claim = this.#claims.next();
    if (claim === undefined) return undefined;
    // A signal from here on may tell of a job, or of an end, that this claim does not see.
    const rung = this.#bell.clear();
    this.#changes.clear();
    this.#hasChanged = false;
    gate?.noteClaiming(claim);
    void claim.catch(() => rung.heard && this.lanes.awaken()); // What it was notified of is not forgotten.
    const held = await this.holdings.heldOf(claim);
    const answer = await claim;
    const { jobs, limit, endMs } = answer;
    const claimed = jobs.length;
    this.#leftOut = answer.leftOut;
    const quietly = quiet && !answer.leftOut; // What was left out may be all that there is.
    const seen = { ...answer, ...rung, demand: limit, claimed };
    const next = this.#pace.after({ ...seen, quiet: quietly, nowMs: endMs });
    if (claimed > 0) {
      this.#announced = false;
      this.#sweepFirst();
      events.emit('claimed', { queue, count: claimed, durationMs: endMs - startMs });
    }
    // What was notified may be behind the floors. A sweep beside the claim would slow that down.
    if (claimed > 0 || rung.heard) this.lanes.awaken();
    this.attempts.add(answer, held);
    // A drain waits for nothing that is not due.
    if (until === 'empty' && next !== 'claim') this.attempts.flush();
    if (quietly && next !== 'claim' && claimed === 0) this.#announceIdle();
    return { claimed, next, failure: answer.failure };
  }

  /** Sleeps until another claim is worth its statement. */
  async #proceed(next: Next): Promise<void> {
    const { setAside } = this.#tries;
    const releaseInMs = Math.min(this.#releaseInMs, setAside.againInMs(performance.now()));
    if (next === 'claim') return;
    if (next === 'over') await this.#sleep(releaseInMs);
    else if (next === 'sweep' || next === 'sweep on') {
      this.#groupClaims?.seekFreed();
      if (next === 'sweep') this.lanes.urge();
      if (await this.lanes.sweepNow(this.#stopping.signal)) this.#pace.noteSwept();
    } else if (next.rest === 'until woken') await this.#rest(next.anew, releaseInMs);
    else if (this.#options.until === 'empty') await this.#rest(false, next.ms);
    else await this.#sleep(Math.min(next.ms, releaseInMs));
  }

  /** Sleeps until the watch, a notification or the end of the last job, at most `ms`. */
  async #rest(anew: boolean, ms: number): Promise<void> {
    this.#options.watch?.add(this, anew);
    this.#atRest = true;
    if (!this.#leftOut) this.#lookAfterLast();
    await this.#sleep(ms);
    this.#atRest = false;
    this.#options.watch?.remove(this);
  }

  /** Sleeps until the bell rings, or a change makes another claim worth its statement, at most `ms`. */
  async #sleep(ms = Number.POSITIVE_INFINITY): Promise<void> {
    const endMs = performance.now() + ms;
    while (!this.#bell.signalled && (await this.#changes.wait(endMs - performance.now()))) {
      const changed = this.#hasChanged;
      this.#hasChanged = false;
      // Nothing else reports jobs of kinds that the last claim has left out. And the end of a job may let
      // another one of its group begin.
      if (this.#bell.signalled || this.#claims.hasNewRoom || (changed && this.#awaitsEnds)) return;
      if (changed) this.#lookAfterLast();
    }
  }

  /** Looks again after the end of the last job: that may have left one, and if not, the queue is idle. */
  #lookAfterLast(): void {
    if (!this.#atRest || this.#announced || this.attempts.size > 0) return;
    const { until, watch } = this.#options;
    // A look is cheaper than a claim, and serves all queues that become idle at that moment.
    if (until === 'empty') this.wake();
    else watch?.add(this, true);
  }

  /** No claim sees what was held by workers that died before this one began. */
  #sweepFirst(): void {
    if (this.#hasSweptFirst) return;
    this.#hasSweptFirst = true;
    this.lanes.sweepFirst();
  }

  #announceIdle(): void {
    if (!this.#announced) this.#options.events.emit('idle', { queue: this.queue });
    this.#announced = true;
  }

  /**
   * This worker gets no notification of a job that it puts back itself.
   * @param delayMs after which the job is due; without it, it keeps its place
   */
  #expectAgain(job: PutBackJob, delayMs?: number): void {
    if (delayMs === undefined) this.lanes.noteBehind(job);
    else if (delayMs <= MAX_EXPECTED_MS) this.#options.watch?.expect(this, delayMs);
  }

  get #awaitsEnds(): boolean {
    return this.#groupClaims?.awaitsEnds === true;
  }

  get #holder(): Holder & { readonly workerId: number } {
    return { queue: this.queue, workerId: this.#options.environment.workerId };
  }

  /** What is tried when a claim is refused. */
  #makeTries(): ClaimTries {
    const { environment, groups } = this.#options;
    return new ClaimTries({
      ...this.#options,
      ...environment,
      // Those of its group would not wait for it.
      mayPark: groups?.keepPlaces !== true,
      onAccepted: (job) => this.#expectAgain(job),
    });
  }

  #makeLanes(): Lanes {
    const { queue, agingMs, kinds, groups, gate, sweeper } = this.#options;
    const { attempts } = this;
    const { setAside } = this.#tries;
    const quietMs = () => this.#hotPolling.quietMs(performance.now());
    const options = { queue, agingMs, attempts, setAside, quietMs, wake: () => this.wake() };
    // Claims of groups pass nothing over.
    return new Lanes(options, sweeper, groups === undefined ? kinds : [], gate?.kinds);
  }

  #makeGroupClaims(): GroupClaims | undefined {
    const { environment, claimRunner, groups } = this.#options;
    return groups?.claims({
      ...this.#options,
      runner: claimRunner,
      workerId: environment.workerId,
      demand: this.attempts.demand,
      tries: this.#tries,
    });
  }

  #makeClaims(): Claims {
    const { environment, claimRunner, queue, gate } = this.#options;
    return new Claims({
      ...environment,
      runner: claimRunner,
      queue,
      lanes: this.lanes.all,
      demand: this.attempts.demand,
      withCosts: gate?.countsCosts,
      tries: this.#tries,
    });
  }

  /** What becomes of the jobs that it claims. */
  #makeAttempts(): Attempts {
    const { environment, claimRunner, settleRunner, questionRunner, groups } = this.#options;
    const holder = this.#holder;
    return new Attempts({
      ...this.#options,
      runner: claimRunner,
      runs: groups?.runs,
      handlerHolds: groups?.handlerHolds({ ...this.#options, db: questionRunner, holder }),
      holder,
      settler: new Settler({ ...this.#options, ...environment, db: settleRunner, holder }),
      changes: {
        signal: () => {
          this.#hasChanged = true;
          this.#changes.signal();
        },
      },
      onPutBack: (job, delayMs) => {
        if (!this.#stopping.signal.aborted) this.#expectAgain(job, delayMs);
      },
    });
  }

  #makeHoldings(): Holdings {
    const { environment, questionRunner } = this.#options;
    return new Holdings({
      ...this.#options,
      ...environment,
      db: questionRunner,
      holder: this.#holder,
      attempts: this.attempts,
      onDue: () => this.wake(),
      onReleased: () => {
        if (!this.#stopping.signal.aborted) this.sweepSoon();
      },
    });
  }
}
