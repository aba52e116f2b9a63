import { JobCancelledError, LeaseLostError } from '../../../errors.ts';
import { findRequests, type JobRequest } from '../../queries/presence/find-requests.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import type { HeldJob } from '../../sql/fence.ts';
import { Condition } from '../../time/condition.ts';
import { Doubling } from '../../time/doubling.ts';
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
  readonly attempts: Pick<
    Attempts,
    'size' | 'running' | 'unfinished' | 'dropUnwanted' | 'paused' | 'pause' | 'resume'
  >;
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
/** A look after a request asks about all jobs, and so does one after this time: a claim may bring more. */
const ALL_AGAIN_MS = 400;
/** So long for each job that it has asked about, no other look asks about all: they may be thousands. */
const MS_PER_JOB = 0.1;
/** An outage is reported at once, and again at this interval while it lasts. */
const REPORT_EVERY_MS = 5_000;

/**
 * Learns what is asked of a worker from outside: to end a running job, or to pause or resume a queue. One
 * small statement asks for all its queues and jobs, so that claims need not.
 */
export class Requests implements BackgroundPart {
  readonly #options: RequestsOptions;
  readonly #alarm = new Condition();
  #wokenMs = Number.NEGATIVE_INFINITY;
  /** When to ask about all jobs, and when that may be at the soonest. */
  #askAllMs = Number.POSITIVE_INFINITY;
  #mayAskAllMs = Number.NEGATIVE_INFINITY;
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
    this.#wokenMs = performance.now();
    this.#askAllMs = Math.min(this.#askAllMs, Math.max(this.#mayAskAllMs, this.#wokenMs));
    this.#alarm.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { retries } = this.#options;
    const delays = new Doubling(2 * POLL_MS);
    let answered = await this.#look();
    if (answered) this.#markReady();
    while (!signal.aborted) {
      // While the database is away it asks less and less often, and at once when the database is back.
      if (!answered) await retries.sleep(jitter(delays.next()), signal);
      else if (!(await this.#rest(signal))) continue;
      await sleep(GATHER_MS, signal);
      if (signal.aborted) return;
      // A signal from here on may tell of something that this look does not see.
      this.#alarm.clear();
      answered = await this.#look();
      if (!answered) continue;
      delays.reset();
      this.#markReady();
    }
  }

  /** Returns whether there is a reason to look: the second look after a request needs jobs to ask about. */
  async #rest(signal: AbortSignal): Promise<boolean> {
    const { listener, loops } = this.#options;
    const ms = jitter(listener.listening ? FALLBACK_MS : POLL_MS);
    const askAllInMs = Math.max(this.#askAllMs - performance.now(), 0);
    if ((await this.#alarm.wait(Math.min(ms, askAllInMs), signal)) || ms <= askAllInMs) return true;
    if (loops.some(({ attempts }) => attempts.size > 0)) return true;
    this.#askAllMs = Number.POSITIVE_INFINITY;
    return false;
  }

  #noteAskingAll(nowMs: number, jobs: number): void {
    this.#mayAskAllMs = nowMs + jobs * MS_PER_JOB;
    const isEarly = nowMs < this.#wokenMs + ALL_AGAIN_MS;
    this.#askAllMs = isEarly ? nowMs + ALL_AGAIN_MS : Number.POSITIVE_INFINITY;
  }

  /** Never rejects; returns whether the database has answered. */
  async #look(): Promise<boolean> {
    const { db, tables, workerId, loops, events } = this.#options;
    const startMs = performance.now();
    const asksAll = startMs >= this.#askAllMs;
    const asked = loops.flatMap(({ attempts }) => (asksAll ? attempts.unfinished : attempts.running));
    if (asksAll) this.#noteAskingAll(startMs, asked.length);
    try {
      const { paused, jobs } = await findRequests(db, tables, {
        workerId,
        queues: loops.map(({ queue }) => queue),
        jobs: asked.map(({ job }) => job),
      });
      for (const loop of loops) this.#pauseOrResume(loop, paused.has(loop.queue));
      const requests = new Map(jobs.map((request) => [keyOf(request), request]));
      for (const attempt of requests.size === 0 ? [] : asked) {
        const request = requests.get(keyOf(attempt.job));
        if (request !== undefined) tell(attempt, request);
      }
      for (const { attempts } of loops) attempts.dropUnwanted();
      this.#reportedMs = Number.NEGATIVE_INFINITY;
      return true;
    } catch (error) {
      if (asksAll) this.#askAllMs = startMs;
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

function keyOf({ id, fence }: HeldJob): string {
  return `${id}/${fence}`;
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
