import { JobCancelledError, LeaseLostError } from '../../../errors.ts';
import { findRequests, type JobRequest } from '../../queries/presence/find-requests.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import { Condition } from '../../time/condition.ts';
import { jitter } from '../../time/jitter.ts';
import type { Retries } from '../../time/retries.ts';
import { sleep } from '../../time/sleep.ts';
import type { BackgroundPart } from '../base/background.ts';
import type { WorkerEmitter } from '../base/events.ts';
import type { Attempts } from '../begin/attempts.ts';
import type { Listener } from '../presence/listener.ts';
import type { Attempt } from '../run/attempt.ts';

/** One queue's loop, as far as it can be asked for something. */
export interface RequestTarget {
  readonly queue: string;
  readonly attempts: Pick<Attempts, 'running' | 'dropUnwanted' | 'paused' | 'pause' | 'resume'>;
  /** Looks for jobs that its claims have passed. */
  sweepSoon(): void;
  wake(): void;
}

export interface RequestsOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  readonly workerId: number;
  readonly loops: readonly RequestTarget[];
  readonly listener: Pick<Listener, 'listening'>;
  readonly events: WorkerEmitter;
  readonly retries: Pick<Retries, 'sleep'>;
}

/** Without notifications. A quarter more, on a busy server, is still within the promised second. */
const POLL_MS = 500;
/** With notifications, in case one was missed. */
const FALLBACK_MS = 5_000;
/** Many requests in a row are looked at together. */
const GATHER_MS = 20;
const MAX_RETRY_MS = 5_000;
/** An outage is reported at once, and again at this interval while it lasts. */
const REPORT_EVERY_MS = 5_000;

/**
 * Learns what is asked of a worker from outside: to end a running job, or to pause or resume a queue. One
 * small statement asks for all its queues and jobs, so that claims need not.
 */
export class Requests implements BackgroundPart {
  readonly #options: RequestsOptions;
  readonly #alarm = new Condition();
  #reportedMs = Number.NEGATIVE_INFINITY;
  #markReady: () => void = () => undefined;
  /** Fulfilled when the worker may claim: the database has answered which queues are paused already. */
  readonly ready = new Promise<void>((resolve) => {
    this.#markReady = resolve;
  });

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /** Looks soon: there may be a request. */
  wake(): void {
    this.#alarm.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { retries } = this.#options;
    let failures = (await this.#look()) ? 0 : 1;
    if (failures === 0) this.#markReady();
    while (!signal.aborted) {
      // While the database is away it asks less and less often, and at once when the database is back.
      if (failures > 0) await retries.sleep(jitter(Math.min(POLL_MS * 2 ** failures, MAX_RETRY_MS)), signal);
      else await this.#alarm.wait(jitter(this.#options.listener.listening ? FALLBACK_MS : POLL_MS), signal);
      await sleep(GATHER_MS, signal);
      if (signal.aborted) return;
      // A signal from here on may tell of something that this look does not see.
      this.#alarm.clear();
      failures = (await this.#look()) ? 0 : failures + 1;
      if (failures === 0) this.#markReady();
    }
  }

  /** Never rejects; returns whether the database has answered. */
  async #look(): Promise<boolean> {
    const { db, tables, workerId, loops, events } = this.#options;
    const running = loops.flatMap(({ attempts }) => attempts.running);
    try {
      const { paused, jobs } = await findRequests(db, tables, {
        workerId,
        queues: loops.map(({ queue }) => queue),
        jobs: running.map(({ job }) => job),
      });
      for (const loop of loops) this.#pauseOrResume(loop, paused.has(loop.queue));
      for (const request of jobs) {
        const attempt = running.find(({ job }) => job.id === request.id && job.fence === request.fence);
        if (attempt !== undefined) tell(attempt, request);
      }
      for (const { attempts } of loops) attempts.dropUnwanted();
      this.#reportedMs = Number.NEGATIVE_INFINITY;
      return true;
    } catch (error) {
      const nowMs = performance.now();
      if (nowMs - this.#reportedMs >= REPORT_EVERY_MS) {
        this.#reportedMs = nowMs;
        events.emit('error', { error, during: 'looking for cancels and pauses' });
      }
      return false;
    }
  }

  #pauseOrResume(loop: RequestTarget, paused: boolean): void {
    const { queue, attempts } = loop;
    if (paused === attempts.paused) return;
    if (paused) {
      attempts.pause();
    } else {
      attempts.resume();
      // What was given back lies behind the floors.
      loop.sweepSoon();
      loop.wake();
    }
    this.#options.events.emit(paused ? 'paused' : 'resumed', { queue });
  }
}

function tell(attempt: Attempt, { held, cancelReason }: JobRequest): void {
  const { kind, id } = attempt.job;
  if (held) {
    if (cancelReason !== null) attempt.cancel(cancelReason);
    return;
  }
  // The handler's own `complete(tx)` may have ended it; then the handler is left alone.
  if (!attempt.open) return;
  attempt.end(
    cancelReason === null ? new LeaseLostError(kind, id) : new JobCancelledError(kind, id, cancelReason),
  );
}
