import { QueueError } from '../../errors.ts';
import { toStoredJson } from '../../job/stored-json.ts';
import { writeProgress } from '../../queries/write-progress.ts';
import { nextTurn } from '../../runtime.ts';
import { Condition } from '../../time/condition.ts';
import { sleep } from '../../time/sleep.ts';
import type { BackgroundPart } from '../background.ts';
import type { Attempt, AttemptEnvironment } from './attempt.ts';
import type { WorkerEmitter } from './events.ts';

/** Whoever lists jobs reads the row, and each value writes it anew. */
export const MAX_PROGRESS_BYTES = 4_096;
/**
 * The least time between two statements, at most four a second, each for all running jobs of the queue. A
 * timer may fire two milliseconds early: it drops the fraction, and the event loop's time does.
 */
const INTERVAL_MS = 252;
/** After a failed write. */
const RETRY_MS = 5_000;

/** Writes how far running jobs are. A queue takes part from its first value on: thousands cost nothing. */
export class Progress implements BackgroundPart {
  readonly #environment: Pick<AttemptEnvironment, 'db' | 'tables'>;
  readonly #events: WorkerEmitter;
  readonly #queues = new Map<string, QueueProgress>();
  readonly #added = new Condition();

  constructor(environment: Pick<AttemptEnvironment, 'db' | 'tables'>, events: WorkerEmitter) {
    this.#environment = environment;
    this.#events = events;
  }

  /** Takes a value, in place of an earlier one that is not written yet. Never throws. */
  report(attempt: Attempt, value: unknown): void {
    const { id, queue } = attempt.job;
    try {
      this.#of(queue).report(attempt, progressToStore(value));
    } catch (error) {
      this.#events.emit('error', { error, during: `the progress of job ${id} of '${queue}'` });
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    const runs = new Map<QueueProgress, Promise<void>>();
    while (!signal.aborted) {
      for (const queue of this.#queues.values()) if (!runs.has(queue)) runs.set(queue, queue.run(signal));
      await this.#added.wait(Number.POSITIVE_INFINITY, signal);
    }
    await Promise.all(runs.values());
  }

  #of(name: string): QueueProgress {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = new QueueProgress(this.#environment, this.#events);
      this.#queues.set(name, queue);
      this.#added.signal();
    }
    return queue;
  }
}

/** The jobs of one queue: the last value of each, in one statement for all. */
class QueueProgress implements BackgroundPart {
  readonly #environment: Pick<AttemptEnvironment, 'db' | 'tables'>;
  readonly #events: WorkerEmitter;
  /** The JSON texts to write. */
  readonly #values = new Map<Attempt, string>();
  readonly #reported = new Condition();

  constructor(environment: Pick<AttemptEnvironment, 'db' | 'tables'>, events: WorkerEmitter) {
    this.#environment = environment;
    this.#events = events;
  }

  report(attempt: Attempt, json: string): void {
    this.#values.set(attempt, json);
    this.#reported.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#values.size === 0) await this.#reported.wait(Number.POSITIVE_INFINITY, signal);
      // The values that handlers report in this turn of the event loop go out together.
      await nextTurn();
      if (signal.aborted) return;
      this.#reported.clear();
      await sleep(await this.#write(), signal);
    }
  }

  /** Never rejects; returns how many milliseconds to wait before the next write. */
  async #write(): Promise<number> {
    // A finished attempt's progress is irrelevant, and after `complete` the handler has its row locked.
    for (const attempt of this.#values.keys()) if (!attempt.open) this.#values.delete(attempt);
    const values = [...this.#values];
    const [first] = values;
    if (first === undefined) return 0;
    const { db, tables } = this.#environment;
    const { holder } = first[0];
    const jobs = values.map(([{ job }, progress]) => ({ id: job.id, fence: job.fence, progress }));
    const startMs = performance.now();
    try {
      const written = await writeProgress(db, tables, holder, jobs);
      for (const [attempt, progress] of values) {
        // Unless a newer value has arrived.
        if (written.has(attempt.job.id) && this.#values.get(attempt) === progress)
          this.#values.delete(attempt);
      }
      return Math.max(0, startMs + INTERVAL_MS - performance.now());
    } catch (error) {
      this.#events.emit('error', { error, during: `writing the progress of jobs of '${holder.queue}'` });
      return RETRY_MS;
    }
  }
}

/** @throws TypeError | QueueError when it cannot be stored, or is too large */
export function progressToStore(value: unknown): string {
  const json = toStoredJson(value === undefined ? null : value);
  const bytes = new TextEncoder().encode(json).length;
  if (bytes > MAX_PROGRESS_BYTES) {
    throw new QueueError(
      `job.progress takes a value of at most ${MAX_PROGRESS_BYTES} bytes of JSON, got ${bytes}`,
    );
  }
  return json;
}
