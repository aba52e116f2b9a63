import { type ClaimedJob, claimJobs, sawTheEnd } from '../../queries/claim-jobs.ts';
import { findHeldJobs } from '../../queries/find-held-jobs.ts';
import { releaseJobs } from '../../queries/release-jobs.ts';
import type { Runner } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import type { AttemptEnvironment } from '../attempt/attempt.ts';
import { Attempts } from '../attempt/attempts.ts';
import type { WorkerEmitter } from '../attempt/events.ts';
import type { Handler } from '../attempt/handler.ts';
import { Settler } from '../attempt/settle.ts';
import { Condition } from '../time/condition.ts';
import { jitter } from '../time/jitter.ts';
import type { Retries } from '../time/retries.ts';
import { Bands } from './bands.ts';
import { HotPolling } from './hot-polling.ts';
import { LostAnswers } from './lost-answers.ts';
import type { IdleQueue, Watch } from './watch.ts';

export interface ClaimLoopOptions {
  readonly environment: AttemptEnvironment & { readonly workerId: number };
  /** Runs the claims and the settlements. */
  readonly runner: Runner;
  readonly queue: string;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  readonly pollIntervalMs: number;
  readonly events: WorkerEmitter;
  /** What wakes the loop when its queue is idle; without one it ends when no job is due and none is held. */
  readonly watch: Watch | undefined;
  readonly retries: Retries;
  /** Aborted when settling must no longer be repeated. */
  readonly giveUp: AbortSignal;
}

const MAX_ERROR_PAUSE_MS = 5_000;
const MAX_EXPECTED_MS = 2_000; // What is due later, the watch sees in time.

/**
 * One queue in one process: claims as many due jobs as its attempts have use for. One loop for all slots, so that one claim serves many.
 *
 * While claims come back full it does not pause. After one that came back short it looks again every few milliseconds, then less and
 * less often; at last the queue is idle, and the watch or a notification wakes it.
 */
export class ClaimLoop implements IdleQueue {
  readonly #options: ClaimLoopOptions;
  readonly #held: Holder & { readonly workerId: number };
  readonly bands = new Bands();
  readonly #hotPolling: HotPolling;
  readonly attempts: Attempts;
  /** A slot is free, an outcome is written, the loop is stopped, or its queue is paused or resumed. */
  readonly #changes = new Condition();
  readonly #stopping = new AbortController();
  /** Rings when there may be something to claim. */
  readonly #alarm = new Condition();
  #foundNothing = false;
  /** Whether the queue was announced idle, and no job was found since. */
  #announced = false;
  /** The loop waits without a time at which it looks by itself. */
  #atRest = false;
  /** Jobs or notifications have come since the queue was last idle. */
  #eventful = true;
  /** Whether a notification has come that no job has answered yet. */
  #expectant = false;
  readonly #lostAnswers = new LostAnswers();
  /** How often this worker was declared gone and came back. */
  #returns = 0;

  constructor(options: ClaimLoopOptions) {
    this.#options = options;
    const { environment, runner, queue, handlers, concurrency, events } = options;
    const { workerId } = environment;
    this.#held = { queue, workerId };
    this.#hotPolling = new HotPolling(options.pollIntervalMs);
    this.attempts = new Attempts({
      environment,
      handlers,
      concurrency,
      // A drain is to end.
      persistent: options.watch !== undefined,
      runner,
      held: this.#held,
      retries: options.retries,
      settler: new Settler({ ...options, ...environment, db: runner, held: this.#held }),
      events,
      onChange: () => {
        this.#changes.signal();
        this.#lookAfterLast();
      },
    });
    // What this worker puts back itself, nobody notifies it of.
    events.on('failed', ({ job, retryInMs }) => this.#expect(job, retryInMs));
    events.on('snoozed', ({ job, delayMs }) => this.#expect(job, delayMs));
    events.on('interrupted', ({ job }) => {
      if (job.queue !== queue) return;
      // Given back, it keeps its run_at, which the floors have passed.
      this.bands.sweepNext();
      this.wake();
    });
  }

  get queue(): string {
    return this.#options.queue;
  }

  /** Claims soon. */
  wake(): void {
    this.#alarm.signal();
  }

  /** Claims at once, and stays hot: others may follow that do not notify. */
  notify(): void {
    this.#eventful = true;
    this.#expectant = true;
    this.#hotPolling.note(performance.now());
    this.#alarm.signal();
  }

  /** Claims until `stop` is called (or nothing is left, without a watch); answers how many jobs. Never rejects. */
  async run(): Promise<number> {
    const { queue, pollIntervalMs, events, watch, retries } = this.#options;
    let failures = 0;
    let total = 0;
    while (!this.#stopping.signal.aborted) {
      const { demand } = this.attempts;
      if (demand <= 0) {
        // A drain does not wait for the end of a pause.
        if (watch === undefined && this.attempts.paused && this.attempts.size === 0) return total;
        await this.#changes.wait();
        continue;
      }
      // A ring from here on may tell of a job that this claim does not see.
      this.#alarm.clear();
      const sweep = this.bands.sweepIsDue(performance.now(), this.#expectant);
      let claimed: number;
      try {
        claimed = await this.#claim(demand, sweep);
        total += claimed;
        failures = 0;
      } catch (error) {
        events.emit('error', { error, during: `claiming from '${queue}'` });
        const pauseMs = Math.min(pollIntervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS);
        if (await retries.sleep(jitter(pauseMs), this.#stopping.signal)) failures = 0;
        continue;
      }
      if (claimed >= demand) continue;
      if (watch === undefined && this.#foundNothing) {
        // Only a sweep has looked everywhere.
        if (sweep) return total;
        this.bands.sweepNext();
        continue;
      }
      await this.#rest();
    }
    return total;
  }

  /** Claims no more, and gives back what has not begun. Handlers go on. */
  stop(): void {
    this.#stopping.abort();
    this.attempts.stop();
    this.#changes.signal();
    this.#alarm.signal();
  }

  /** Resolves when no handler runs and every outcome is written. */
  async finished(): Promise<void> {
    while (this.attempts.size > 0) await this.#changes.wait();
  }

  /** Tells every running handler that the worker stops. */
  interrupt(reason: Error): void {
    this.attempts.interrupt(reason);
  }

  /**
   * Gives back what is still held at the very end: by id, what could not be written; and only after a claim whose answer was lost,
   * what it may have taken, for which the whole queue is read.
   */
  async giveBack(): Promise<void> {
    const { db, tables } = this.#options.environment;
    await this.attempts.unwritten.giveBack(db, tables, this.#held);
    if (this.#lostAnswers.suspected(performance.now())) await this.#release();
  }

  /** Gives back whatever this worker holds here without knowing. */
  async #release(): Promise<void> {
    const { db, tables } = this.#options.environment;
    await releaseJobs(db, tables, { ...this.#held, except: this.attempts.jobs });
  }

  /** Ends the attempts whose jobs are no longer held: after this worker was declared gone for a while. */
  async endLostAttempts(): Promise<void> {
    this.#returns++;
    const { unfinished } = this.attempts;
    if (unfinished.length === 0) return;
    const { db, tables } = this.#options.environment;
    const jobs = unfinished.map(({ job }) => job);
    const held = await findHeldJobs(db, tables, this.#held, jobs);
    this.attempts.endLost(unfinished, held);
  }

  async #claim(limit: number, sweep: boolean): Promise<number> {
    const { environment, runner, queue, handlers, events } = this.#options;
    const startMs = performance.now();
    if (this.#lostAnswers.releaseIsDue(startMs)) {
      await this.#release();
      this.#lostAnswers.noteRelease(startMs);
    }
    // What ends during the claim may be due again at once, unseen.
    const quiet = this.attempts.size === 0;
    const told = this.#expectant;
    this.#expectant = false;
    const returns = this.#returns;
    const claim = claimJobs(runner, environment.tables, {
      ...this.#held,
      kinds: [...handlers.keys()],
      bands: this.bands.of(sweep),
      limit,
      beginning: this.attempts.beginning,
      fromGoneWorkers: sweep,
    });
    const jobs = await this.#lostAnswers.answerTo(claim);
    const endMs = performance.now();
    this.bands.note({ jobs, short: sawTheEnd(limit, jobs), sweep, startMs, endMs });
    if (told && !sweep && jobs.length === 0) this.#expectant = true;
    if (jobs.length > 0) {
      this.#announced = false;
      this.#eventful = true;
      this.#hotPolling.note(endMs);
      events.emit('claimed', { queue, count: jobs.length, durationMs: endMs - startMs });
    }
    this.attempts.add(jobs);
    // Claimed while peers took this worker for gone, they may be somebody else's by now.
    if (this.#returns !== returns && jobs.length > 0) await this.endLostAttempts();
    this.#foundNothing = quiet && jobs.length === 0;
    if (this.#foundNothing && !this.#announced) events.emit('idle', { queue });
    this.#announced ||= this.#foundNothing;
    return jobs.length;
  }

  /** Waits until another claim is worth its statement. */
  async #rest(): Promise<void> {
    const { watch, pollIntervalMs } = this.#options;
    const gapMs = this.#hotPolling.gapMs(performance.now());
    if (gapMs !== undefined && watch !== undefined) return void (await this.#alarm.wait(gapMs));
    watch?.add(this, this.#eventful);
    this.#eventful = false;
    this.#atRest = true;
    this.#lookAfterLast();
    await this.#alarm.wait(watch === undefined ? pollIntervalMs : Number.POSITIVE_INFINITY);
    this.#atRest = false;
    watch?.remove(this);
  }

  /** When the last job has ended it is time for another claim: it may have left one, and if not, the queue is idle. */
  #lookAfterLast(): void {
    if (this.#atRest && !this.#announced && this.attempts.size === 0) this.wake();
  }

  #expect(job: ClaimedJob, inMs: number | undefined): void {
    if (job.queue !== this.queue || inMs === undefined || inMs > MAX_EXPECTED_MS) return;
    this.#options.watch?.expect(this, inMs);
  }
}
