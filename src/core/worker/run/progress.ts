import { QueueError } from '../../../errors.ts';
import { toStoredJson } from '../../job/stored-json.ts';
import { writeProgress } from '../../queries/settle/write-progress.ts';
import { nextTurn } from '../../runtime.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import { Condition } from '../../time/condition.ts';
import { Doubling } from '../../time/doubling.ts';
import { sleep } from '../../time/sleep.ts';
import type { BackgroundPart } from '../base/background.ts';
import type { WorkerEmitter } from '../base/events.ts';
import { inHalves } from '../base/in-halves.ts';
import { isAboutAccess, isAboutTheServer } from '../base/refusal.ts';
import type { Attempt } from './attempt.ts';

/** Listing jobs reads the row, and each value rewrites it. */
export const MAX_PROGRESS_BYTES = 4_096;
/**
 * The least time between two statements, at most four a second, each for all running jobs of the queue. A
 * timer may fire two milliseconds early: it drops the fraction, and the event loop's time does.
 */
const INTERVAL_MS = 252;
/** After a failed write. */
const RETRY_MS = 5_000;
/** The longest wait of a value that is refused again and again. */
const MAX_REFUSED_MS = 300_000;

export interface ProgressEnvironment {
  readonly db: Runner;
  readonly tables: QueueTables;
}

/** Writes how far running jobs are. A queue takes part from its first value on: thousands cost nothing. */
export class Progress implements BackgroundPart {
  readonly #environment: ProgressEnvironment;
  readonly #events: WorkerEmitter;
  readonly #queues = new Map<string, QueueProgress>();
  readonly #added = new Condition();

  constructor(environment: ProgressEnvironment, events: WorkerEmitter) {
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

type Value = readonly [Attempt, string];

/** When a value that was refused is tried again. */
interface Refusal {
  readonly delays: Doubling;
  readonly againMs: number;
}

/**
 * The jobs of one queue: the last value of each, in one statement for all. What the database refuses is
 * halved until the refused row is alone. That one waits, longer each time, and is then tried by itself.
 */
class QueueProgress implements BackgroundPart {
  readonly #environment: ProgressEnvironment;
  readonly #events: WorkerEmitter;
  /** The JSON texts to write. */
  readonly #values = new Map<Attempt, string>();
  readonly #refusals = new Map<Attempt, Refusal>();
  readonly #reported = new Condition();

  constructor(environment: ProgressEnvironment, events: WorkerEmitter) {
    this.#environment = environment;
    this.#events = events;
  }

  report(attempt: Attempt, json: string): void {
    this.#values.set(attempt, json);
    this.#reported.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const againMs = this.#againMs();
      if (againMs > 0) await this.#reported.wait(againMs, signal);
      // The values that handlers report in this turn of the event loop go out together.
      await nextTurn();
      if (signal.aborted) return;
      this.#reported.clear();
      await sleep(await this.#write(signal), signal);
    }
  }

  /** How many milliseconds until there is something to write, unless a value is reported before. */
  #againMs(): number {
    let againMs = Number.POSITIVE_INFINITY;
    for (const attempt of this.#values.keys()) {
      againMs = Math.min(againMs, this.#refusals.get(attempt)?.againMs ?? Number.NEGATIVE_INFINITY);
    }
    return againMs - performance.now();
  }

  /** Never rejects; returns how many milliseconds to wait before the next write. */
  async #write(signal: AbortSignal): Promise<number> {
    // A finished attempt's progress is irrelevant, and after `complete` the handler has its row locked.
    for (const attempt of this.#values.keys()) if (!attempt.open) this.#values.delete(attempt);
    for (const attempt of this.#refusals.keys()) if (!attempt.open) this.#refusals.delete(attempt);
    const startMs = performance.now();
    const accepted: Value[] = [];
    const refused: Value[] = [];
    for (const value of this.#values) {
      const againMs = this.#refusals.get(value[0])?.againMs;
      if (againMs === undefined) accepted.push(value);
      // One at a time: were all refused, each write would be hundreds of statements.
      else if (againMs <= startMs && refused.length === 0) refused.push(value);
    }
    if (accepted.length === 0 && refused.length === 0) return 0;
    try {
      if (accepted.length > 0) await this.#send(accepted, signal);
      if (refused.length > 0) await this.#send(refused, signal);
      return Math.max(0, startMs + INTERVAL_MS - performance.now());
    } catch (error) {
      const { queue } = [...accepted, ...refused][0]?.[0].job ?? {};
      this.#events.emit('error', { error, during: `writing the progress of jobs of '${queue}'` });
      return RETRY_MS;
    }
  }

  /** @throws what is about no single row */
  async #send(values: readonly Value[], signal: AbortSignal): Promise<void> {
    await inHalves(values, {
      write: async (some) => {
        if (!signal.aborted) await this.#writeTogether(some);
      },
      refuse: ([attempt], error) => this.#refuse(attempt, error),
      mayBeOfRow: (error) => !isAboutTheServer(error) && !isAboutAccess(error),
    });
  }

  async #writeTogether(values: readonly Value[]): Promise<void> {
    const [first] = values;
    if (first === undefined) return;
    const { db, tables } = this.#environment;
    const { holder } = first[0];
    const jobs = values.map(([{ job }, progress]) => ({ id: job.id, fence: job.fence, progress }));
    const written = await writeProgress(db, tables, holder, jobs);
    for (const [attempt, progress] of values) {
      this.#refusals.delete(attempt);
      // Unless a newer value has arrived.
      if (written.has(attempt.job.id) && this.#values.get(attempt) === progress) this.#values.delete(attempt);
    }
  }

  #refuse(attempt: Attempt, error: unknown): void {
    const { id, queue } = attempt.job;
    const delays = this.#refusals.get(attempt)?.delays ?? new Doubling(RETRY_MS, MAX_REFUSED_MS);
    this.#refusals.set(attempt, { delays, againMs: performance.now() + delays.next() });
    this.#events.emit('error', { error, during: `writing the progress of job ${id} of '${queue}'` });
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
