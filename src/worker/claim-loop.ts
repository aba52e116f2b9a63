import { claimJobs } from '../queries/claim-jobs.ts';
import type { Runner } from '../queries/executor.ts';
import { findHeldJobs } from '../queries/find-held-jobs.ts';
import type { Held } from '../queries/held.ts';
import { releaseJobs } from '../queries/release-jobs.ts';
import type { AttemptEnvironment } from './attempt.ts';
import { Attempts } from './attempts.ts';
import { Bands } from './bands.ts';
import type { Handler } from './handler.ts';
import { pause } from './pause.ts';
import { Settler } from './settle-jobs.ts';
import type { WorkerEmitter } from './worker-events.ts';

export interface ClaimLoopOptions {
  readonly environment: AttemptEnvironment & { readonly workerId: number };
  /** Runs the claims and the settlements. */
  readonly runner: Runner;
  readonly queue: string;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  readonly pollIntervalMs: number;
  readonly events: WorkerEmitter;
  /** End when no job is due and none is held, instead of waiting for more. */
  readonly untilEmpty: boolean;
  /** Aborted when settling must no longer be repeated. */
  readonly giveUp: AbortSignal;
}

const MAX_ERROR_PAUSE_MS = 5_000;
/** For so long after a claim whose answer was lost, the server may still be carrying it out. */
const SUSPECT_MS = 60_000;
const RELEASE_EVERY_MS = 5_000;

/**
 * One queue in one process: claims as many due jobs as its attempts have use for. One loop for all slots, so the database sees
 * one claim for many jobs, and never more claims than queues.
 */
export class ClaimLoop {
  readonly #options: ClaimLoopOptions;
  readonly #held: Held & { readonly workerId: number };
  readonly #bands = new Bands();
  readonly #attempts: Attempts;
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
    const { environment, runner, queue, handlers, concurrency, events, giveUp } = options;
    const { tables, workerId } = environment;
    this.#held = { queue, workerId };
    this.#attempts = new Attempts({
      environment,
      handlers,
      concurrency,
      settler: new Settler(runner, tables, this.#held, events, giveUp),
      events,
      onChange: () => this.#changed(),
    });
  }

  /** Claims until `stop` is called (or nothing is left, with `untilEmpty`); answers how many jobs. Never rejects. */
  async run(): Promise<number> {
    const { queue, pollIntervalMs, events, untilEmpty } = this.#options;
    let failures = 0;
    let total = 0;
    while (!this.#stopping.signal.aborted) {
      const { demand } = this.#attempts;
      if (demand <= 0) {
        await this.#change();
        continue;
      }
      let claimed: number;
      try {
        claimed = await this.#claim(demand);
        total += claimed;
        failures = 0;
      } catch (error) {
        events.emit('error', { error, during: `claiming from '${queue}'` });
        const pauseMs = Math.min(pollIntervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS);
        await pause(jittered(pauseMs), this.#stopping.signal);
        continue;
      }
      if (claimed >= demand) continue;
      if (claimed === 0 && this.#attempts.size === 0) {
        events.emit('idle', { queue });
        if (untilEmpty) {
          // Only a sweep has looked everywhere.
          if (this.#swept) return total;
          this.#mayBeEmpty = true;
          continue;
        }
      }
      this.#mayBeEmpty = false;
      await pause(jittered(pollIntervalMs), this.#stopping.signal);
    }
    return total;
  }

  /** Claims no more, and gives back what has not begun. Handlers go on. */
  stop(): void {
    this.#stopping.abort();
    this.#attempts.stop();
    this.#changed();
  }

  /** Resolves when no handler runs and every outcome is written. */
  async finished(): Promise<void> {
    while (this.#attempts.size > 0) await this.#change();
  }

  /** Tells every running handler that the worker stops. */
  interrupt(reason: Error): void {
    this.#attempts.interrupt(reason);
  }

  /** Gives back whatever this worker holds here without knowing: after a claim whose answer was lost, and at the very end. */
  async release(): Promise<void> {
    const { db, tables } = this.#options.environment;
    await releaseJobs(db, tables, { ...this.#held, exceptIds: this.#attempts.ids });
  }

  /** Ends the attempts whose jobs are no longer held: after this worker was declared gone for a while. */
  async endLostAttempts(): Promise<void> {
    const { unfinished } = this.#attempts;
    if (unfinished.length === 0) return;
    const { db, tables } = this.#options.environment;
    this.#attempts.endLost(await findHeldJobs(db, tables, this.#held, unfinished));
  }

  async #claim(limit: number): Promise<number> {
    const { environment, runner, queue, handlers, events } = this.#options;
    const startMs = performance.now();
    await this.#releaseUnknown(startMs);
    const sweep = this.#bands.sweepIsDue(startMs) || this.#mayBeEmpty;
    this.#swept = sweep;
    const jobs = await claimJobs(runner, environment.tables, {
      ...this.#held,
      kinds: [...handlers.keys()],
      bands: this.#bands.of(sweep),
      limit,
      fromGoneWorkers: sweep,
    }).catch((error: unknown) => {
      this.#suspectUntilMs = performance.now() + SUSPECT_MS;
      throw error;
    });
    const endMs = performance.now();
    this.#bands.note(jobs, sweep, startMs, endMs);
    if (jobs.length > 0) events.emit('claimed', { queue, count: jobs.length, durationMs: endMs - startMs });
    this.#attempts.add(jobs);
    return jobs.length;
  }

  /** A claim may have been carried out although its answer never came: those jobs are held by nobody who knows. */
  async #releaseUnknown(nowMs: number): Promise<void> {
    if (nowMs > this.#suspectUntilMs || nowMs < this.#nextReleaseMs) return;
    await this.release();
    this.#nextReleaseMs = nowMs + RELEASE_EVERY_MS;
  }

  /** Waits until a slot is free or an outcome is written, or the loop is stopped. */
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
