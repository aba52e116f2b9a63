import { LeaseLostError } from '../errors.ts';
import type { Outcome } from '../job/outcome.ts';
import { type Transition, transitionFor } from '../job/transition.ts';
import { type ClaimedJob, claimJobs } from '../queries/claim-jobs.ts';
import { findHeldJobs } from '../queries/find-held-jobs.ts';
import { releaseJobs } from '../queries/release-jobs.ts';
import { announce } from './announce.ts';
import { Attempt, type AttemptEnvironment } from './attempt.ts';
import { Bands } from './bands.ts';
import { executeJob, outcomeIfStillHeld } from './execute-job.ts';
import type { Handler } from './handler.ts';
import { pause } from './pause.ts';
import { Settler } from './settle-jobs.ts';
import type { WorkerEmitter } from './worker-events.ts';

export interface ClaimLoopOptions {
  readonly environment: AttemptEnvironment & { readonly workerId: number };
  readonly queue: string;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  readonly pollIntervalMs: number;
  readonly events: WorkerEmitter;
  /** End when no job is due and none is running, instead of waiting for more. */
  readonly untilEmpty: boolean;
  /** Aborted when settling must no longer be repeated. */
  readonly giveUp: AbortSignal;
}

/** Handlers may run this far ahead of the settling; beyond it a slow database would let unwritten outcomes pile up. */
const MAX_UNSETTLED = 1_000;
const MAX_ERROR_PAUSE_MS = 5_000;
/** For so long after a claim whose answer was lost, the server may still be carrying it out. */
const SUSPECT_MS = 60_000;
const RELEASE_EVERY_MS = 5_000;

/**
 * One queue in one process: claims as many due jobs as it has free slots, runs them, settles them. One loop for all slots, so
 * the database sees one claim for many jobs, and never more claims than queues.
 */
export class ClaimLoop {
  readonly #options: ClaimLoopOptions;
  readonly #bands = new Bands();
  readonly #settler: Settler;
  /** Attempts whose handler runs. Two of them may be of one job: a lost one whose handler goes on, and a newer. */
  readonly #running = new Set<Attempt>();
  /** Attempts whose end is not written yet. */
  readonly #unsettled = new Set<Attempt>();
  readonly #stopping = new AbortController();
  #changed: () => void = () => undefined;
  /** Whether the last claim was a sweep. */
  #swept = false;
  /** Whether the loop would end if a sweep found nothing. */
  #mayBeEmpty = false;
  #suspectUntilMs = 0;
  #nextReleaseMs = 0;

  constructor(options: ClaimLoopOptions) {
    this.#options = options;
    const { environment, queue, events, giveUp } = options;
    const { db, tables, workerId } = environment;
    this.#settler = new Settler(db, tables, { queue, workerId }, events, giveUp);
  }

  /** Claims until `stop` is called (or nothing is left, with `untilEmpty`). Never rejects. */
  async run(): Promise<void> {
    const { queue, concurrency, pollIntervalMs, events, untilEmpty } = this.#options;
    let failures = 0;
    while (!this.#stopping.signal.aborted) {
      const room = Math.min(concurrency - this.#running.size, MAX_UNSETTLED - this.#unsettled.size);
      if (room <= 0) {
        await this.#change();
        continue;
      }
      let claimed: number;
      try {
        claimed = await this.#claim(room);
        failures = 0;
      } catch (error) {
        events.emit('error', { error, during: `claiming from '${queue}'` });
        const pauseMs = Math.min(pollIntervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS);
        await pause(jittered(pauseMs), this.#stopping.signal);
        continue;
      }
      if (claimed >= room) continue;
      if (claimed === 0 && this.#running.size === 0 && this.#unsettled.size === 0) {
        events.emit('idle', { queue });
        if (untilEmpty) {
          // Only a sweep has looked everywhere.
          if (this.#swept) return;
          this.#mayBeEmpty = true;
          continue;
        }
      }
      this.#mayBeEmpty = false;
      await pause(jittered(pollIntervalMs), this.#stopping.signal);
    }
  }

  /** Claims no more. Handlers go on. */
  stop(): void {
    this.#stopping.abort();
    this.#changed();
  }

  /** Resolves when no handler runs and every outcome is written. */
  async finished(): Promise<void> {
    while (this.#running.size + this.#unsettled.size > 0) await this.#change();
  }

  /** Tells every running handler that the worker stops. */
  interrupt(reason: Error): void {
    for (const attempt of this.#running) attempt.interrupt(reason);
  }

  /** Gives back whatever this worker still holds here: for the very end, and after a claim whose answer was lost. */
  async release(): Promise<void> {
    const { environment, queue } = this.#options;
    const exceptIds = [...this.#running, ...this.#unsettled].map(({ job }) => job.id);
    await releaseJobs(environment.db, environment.tables, {
      queue,
      workerId: environment.workerId,
      exceptIds,
    });
  }

  /** Ends the attempts whose jobs are no longer held: after this worker was declared gone for a while. */
  async endLostAttempts(): Promise<void> {
    const attempts = [...this.#running];
    if (attempts.length === 0) return;
    const { environment, queue } = this.#options;
    const { db, tables, workerId } = environment;
    const held = await findHeldJobs(
      db,
      tables,
      { queue, workerId },
      attempts.map(({ job }) => job),
    );
    for (const attempt of attempts) {
      const { id, kind, fence } = attempt.job;
      if (held.get(id) !== fence) attempt.end(new LeaseLostError(kind, id));
    }
  }

  async #claim(limit: number): Promise<number> {
    const { environment, queue, handlers, events } = this.#options;
    const startMs = performance.now();
    await this.#releaseUnknown(startMs);
    const sweep = this.#bands.sweepIsDue(startMs) || this.#mayBeEmpty;
    this.#swept = sweep;
    let jobs: ClaimedJob[];
    try {
      jobs = await claimJobs(environment.db, environment.tables, {
        queue,
        kinds: [...handlers.keys()],
        bands: this.#bands.of(sweep),
        limit,
        workerId: environment.workerId,
        fromGoneWorkers: sweep,
      });
    } catch (error) {
      this.#suspectUntilMs = performance.now() + SUSPECT_MS;
      throw error;
    }
    const endMs = performance.now();
    this.#bands.note(jobs, sweep, startMs, endMs);
    if (jobs.length > 0) events.emit('claimed', { queue, count: jobs.length, durationMs: endMs - startMs });
    for (const job of jobs) this.#begin(job);
    return jobs.length;
  }

  /** A claim may have been carried out although its answer never came: those jobs are held by nobody who knows. */
  async #releaseUnknown(nowMs: number): Promise<void> {
    if (nowMs > this.#suspectUntilMs || nowMs < this.#nextReleaseMs) return;
    await this.release();
    this.#nextReleaseMs = nowMs + RELEASE_EVERY_MS;
  }

  #begin(job: ClaimedJob): void {
    const { environment, handlers } = this.#options;
    const handler = handlers.get(job.kind);
    // The claim asks for the handlers' kinds only.
    if (handler === undefined)
      throw new TypeError(`Claimed a job of the kind '${job.kind}', which has no handler`);
    const attempt = new Attempt(job, handler, environment);
    this.#running.add(attempt);
    if (this.#stopping.signal.aborted) {
      // It was claimed while the worker was told to stop: it is given back without having begun.
      void this.#settle(attempt, { type: 'interrupted' }, performance.now());
    } else {
      void this.#execute(attempt);
    }
  }

  async #execute(attempt: Attempt): Promise<void> {
    const startMs = performance.now();
    const outcome = await executeJob(attempt);
    await this.#settle(attempt, outcomeIfStillHeld(attempt, outcome), startMs);
  }

  /** Decide, write, announce. */
  async #settle(attempt: Attempt, outcome: Outcome, startMs: number): Promise<void> {
    const { events } = this.#options;
    const durationMs = performance.now() - startMs;
    this.#running.delete(attempt);
    this.#unsettled.add(attempt);
    this.#changed();
    try {
      const transition = transitionFor(outcome, attempt.facts);
      const written = await this.#write(attempt, transition);
      announce(events, attempt, outcome, { transition, written, durationMs });
    } catch (error) {
      await this.#settleAsFailed(attempt, error, durationMs);
    } finally {
      this.#unsettled.delete(attempt);
      this.#changed();
    }
  }

  /** The database refuses the outcome itself (an output that is too large, say): then the attempt has failed. */
  async #settleAsFailed(attempt: Attempt, error: unknown, durationMs: number): Promise<void> {
    const { events } = this.#options;
    try {
      const outcome: Outcome = { type: 'failed', error };
      const transition = transitionFor(outcome, attempt.facts);
      const written = await this.#write(attempt, transition);
      announce(events, attempt, outcome, { transition, written, durationMs });
    } catch (second) {
      // It stays held until this worker stops, and is given back then.
      const { id, queue } = attempt.job;
      events.emit('error', { error: second, during: `settling job ${id} of '${queue}'` });
    }
  }

  async #write(attempt: Attempt, transition: Transition): Promise<boolean> {
    const { id, fence } = attempt.job;
    const settlement = { id, fence, transition };
    return attempt.completeRan
      ? await this.#settler.settleAlone(settlement)
      : await this.#settler.settle(settlement);
  }

  /** Waits until a handler or a settling has ended, or the loop is stopped. */
  async #change(): Promise<void> {
    await new Promise<void>((resolve) => {
      const others = this.#changed;
      this.#changed = () => {
        this.#changed = () => undefined;
        others();
        resolve();
      };
    });
  }
}

/** A quarter more or less: workers that were started together do not poll together. */
function jittered(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}
