import { type DueAnswer, findDue } from '../../queries/find-due.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import type { WorkerEmitter } from '../attempt/events.ts';
import type { BackgroundPart } from '../background.ts';
import { Condition } from '../time/condition.ts';
import { jitter } from '../time/jitter.ts';
import { sleep } from '../time/sleep.ts';
import type { Bands } from './bands.ts';

/** An idle queue's loop. */
export interface IdleQueue {
  readonly queue: string;
  readonly bands: Bands;
  /** There may be something to claim. */
  wake(): void;
}

export interface WatchOptions {
  readonly runner: Runner;
  readonly tables: QueueTables;
  readonly workerId: number;
  readonly kinds: readonly string[];
  /** How often to look, at this moment. */
  readonly intervalMs: () => number;
  readonly events: WorkerEmitter;
}

/** Queues that become idle one after the other are looked at together. */
const GATHER_MS = 10;
const MAX_ERROR_PAUSE_MS = 5_000;

/**
 * Watches all idle queues of a worker: one statement for all of them instead of a claim for each. It looks when a queue becomes idle
 * and then every interval, and sets a timer for the next scheduled job that it sees, so that jobs start on time
 * however seldom it looks.
 */
export class Watch implements BackgroundPart {
  readonly #options: WatchOptions;
  readonly #idle = new Set<IdleQueue>();
  readonly #timers = new Map<IdleQueue, NodeJS.Timeout>();
  readonly #alarm = new Condition();
  #over = false;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /**
   * Watches a queue until something may be due in it.
   *
   * @param anew whether it was busy, and is to be looked at without delay. A queue that was woken in vain is not: what made it look due
   *   (a job that is locked by an open transaction, say) would do so again.
   */
  add(idle: IdleQueue, anew: boolean): void {
    this.#idle.add(idle);
    if (anew) this.#alarm.signal();
  }

  remove(idle: IdleQueue): void {
    this.#idle.delete(idle);
  }

  /** Looks now: the interval has become another. */
  look(): void {
    this.#alarm.signal();
  }

  /** Wakes a queue in so many milliseconds, when one of its jobs is known to be due. */
  expect(idle: IdleQueue, inMs: number): void {
    if (this.#over) return;
    clearTimeout(this.#timers.get(idle));
    // Timers may be a moment early.
    const timer = setTimeout(() => idle.wake(), Math.ceil(inMs) + 1);
    this.#timers.set(idle, timer);
  }

  async run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      await sleep(GATHER_MS, signal);
      if (signal.aborted) break;
      this.#alarm.clear();
      let pauseMs = Number.POSITIVE_INFINITY;
      if (this.#idle.size > 0) {
        const intervalMs = this.#options.intervalMs();
        pauseMs = jitter(intervalMs);
        try {
          await this.#look(intervalMs);
          failures = 0;
        } catch (error) {
          this.#options.events.emit('error', { error, during: 'looking for due jobs' });
          pauseMs = jitter(Math.min(intervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS));
        }
      }
      await this.#alarm.wait(pauseMs, signal);
    }
    this.#over = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  async #look(intervalMs: number): Promise<void> {
    const { runner, tables, workerId, kinds } = this.#options;
    const startMs = performance.now();
    const looks = new Map(
      [...this.#idle].map((idle) => {
        const sweep = idle.bands.sweepIsDue(startMs);
        return [
          idle.queue,
          { idle, sweep, floorMs: sweep ? Number.NEGATIVE_INFINITY : idle.bands.lowestFloorMs },
        ];
      }),
    );
    const answers = await findDue(runner, tables, {
      looks: [...looks].map(([queue, { floorMs, sweep }]) => ({ queue, floorMs, fromGoneWorkers: sweep })),
      kinds,
      workerId,
      // What becomes due before the next look, with room for its jitter.
      horizonMs: intervalMs * 2,
    });
    const endMs = performance.now();
    for (const answer of answers) {
      const look = looks.get(answer.queue);
      if (look !== undefined) this.#heed(look, answer, startMs, endMs);
    }
  }

  #heed(
    { idle, sweep }: { idle: IdleQueue; sweep: boolean },
    answer: DueAnswer,
    startMs: number,
    endMs: number,
  ): void {
    const { dueInMs, nowMs } = answer;
    // It was woken while the answer was on its way.
    if (!this.#idle.has(idle)) return;
    if (dueInMs !== undefined && dueInMs <= 0) {
      // It may lie behind the floors.
      if (sweep) idle.bands.sweepNext();
      idle.wake();
      return;
    }
    idle.bands.noteNothing(nowMs, sweep, startMs, endMs);
    if (dueInMs !== undefined) this.expect(idle, dueInMs);
  }
}
