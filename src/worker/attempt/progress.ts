import { QueueError } from '../../errors.ts';
import { toStoredJson } from '../../job/stored-json.ts';
import { writeProgress } from '../../queries/write-progress.ts';
import type { Attempt, AttemptEnvironment } from './attempt.ts';
import type { WorkerEmitter } from './events.ts';

/** A job's row is read by whoever lists jobs, and written anew with each value. */
export const MAX_PROGRESS_BYTES = 4_096;
/** Two statements are at least so far apart: four a second, for all running jobs of the queue together. */
const INTERVAL_MS = 250;
/** After one that failed. */
const RETRY_MS = 5_000;

/**
 * Writes how far the jobs of one queue are: the last value of each, in one statement for all of them. Nothing of it is
 * anybody's concern but the reader's: no handler waits for it, and what fails is an `error` event. Without a value it does nothing.
 */
export class Progress {
  readonly #environment: Pick<AttemptEnvironment, 'db' | 'tables'>;
  readonly #events: WorkerEmitter;
  /** What is to be written: JSON text. */
  readonly #values = new Map<Attempt, string>();
  #timer: NodeJS.Timeout | undefined;
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  constructor(environment: Pick<AttemptEnvironment, 'db' | 'tables'>, events: WorkerEmitter) {
    this.#environment = environment;
    this.#events = events;
  }

  /** Takes a value; an earlier one that was not written yet is forgotten. Never throws. */
  report(attempt: Attempt, value: unknown): void {
    try {
      this.#values.set(attempt, progressToStore(value));
    } catch (error) {
      const { id, queue } = attempt.job;
      this.#events.emit('error', { error, during: `the progress of job ${id} of '${queue}'` });
      return;
    }
    this.#writeSoon();
  }

  #writeSoon(): void {
    if (this.#timer !== undefined || this.#values.size === 0) return;
    const delayMs = Math.max(0, this.#notBeforeMs - performance.now());
    this.#timer = setTimeout(() => void this.#write(), delayMs);
    // A value must not keep a process alive whose handler is done.
    this.#timer.unref();
  }

  async #write(): Promise<void> {
    // What is over is not of interest any more, and the row of one that has called `complete` is locked by its own transaction.
    for (const attempt of this.#values.keys()) if (!attempt.open) this.#values.delete(attempt);
    const values = [...this.#values];
    const [first] = values;
    this.#notBeforeMs = performance.now() + INTERVAL_MS;
    if (first !== undefined) {
      const { db, tables } = this.#environment;
      const { held } = first[0];
      const jobs = values.map(([{ job }, progress]) => ({ id: job.id, fence: job.fence, progress }));
      try {
        const written = await writeProgress(db, tables, held, jobs);
        for (const [attempt, progress] of values) {
          // A newer value may have come meanwhile.
          if (written.has(attempt.job.id) && this.#values.get(attempt) === progress)
            this.#values.delete(attempt);
        }
      } catch (error) {
        this.#events.emit('error', { error, during: `writing the progress of jobs of '${held.queue}'` });
        this.#notBeforeMs = performance.now() + RETRY_MS;
      }
    }
    this.#timer = undefined;
    this.#writeSoon();
  }
}

/** @throws TypeError | QueueError when it cannot be stored, or is too large */
function progressToStore(value: unknown): string {
  const json = toStoredJson(value === undefined ? null : value);
  const bytes = new TextEncoder().encode(json).length;
  if (bytes > MAX_PROGRESS_BYTES) {
    throw new QueueError(
      `job.progress takes a value of at most ${MAX_PROGRESS_BYTES} bytes of JSON, got ${bytes}`,
    );
  }
  return json;
}
