import { MAX_PRIORITY } from '../../job/limits.ts';
import { findOverlooked, findOverlookedByKeptPlan, type Reach } from '../../queries/claim/find-overlooked.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { Condition } from '../../time/condition.ts';
import { Doubling } from '../../time/doubling.ts';
import { jitter } from '../../time/jitter.ts';
import type { Retries } from '../../time/retries.ts';
import type { BackgroundPart } from '../base/background.ts';
import type { WorkerEmitter } from '../base/events.ts';
import type { Attempts } from '../begin/attempts.ts';
import { KeptPlans } from '../statements/kept-plans.ts';
import type { WorkerRunner } from '../statements/statements.ts';
import type { Bands } from './bands.ts';
import type { OverlookedJobs } from './overlooked-jobs.ts';
import type { Sweep } from './sweep.ts';

/** A queue, or some kinds of one, whose claims pass jobs over. */
export interface SweptQueue {
  readonly queue: string;
  readonly kinds: readonly string[];
  readonly bands: Bands;
  readonly sweep: Sweep;
  readonly overlooked: OverlookedJobs;
  /** How long ago the last job came, or was notified. */
  readonly quietMs: number;
  /** Whether it claims at all. */
  readonly attempts: Pick<Attempts, 'paused'>;
  /** Whether claims leave a job out: then it is not found. @default false */
  readonly isSetAside?: ((id: number) => boolean) | undefined;
  /** Jobs were found. */
  wake(): void;
}

export interface SweeperOptions {
  readonly runner: WorkerRunner;
  readonly tables: QueueTables;
  readonly workerId: number;
  /** The queues that it sweeps. */
  readonly queues: () => readonly SweptQueue[];
  /** How often idle queues are swept, at this moment. */
  readonly idleMs: () => number;
  /** How many workers serve the same queues and kinds, this one included. */
  readonly crew: () => number;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
}

/** How many jobs one statement reads, wanted or not: in 15 ms. */
const SLICE = 20_000;
/** The same where they are wanted, and all kept in memory. */
const FOUND_SLICE = 2_000;
/** The most queues that one statement reads: a thousand index ranges. */
const MAX_QUEUES = 100;
/** With this many found and not claimed yet, a queue is not searched for more. */
const ENOUGH = 1_000;
const WAIT_MS = 10;
/** Statements about idle queues take one part in this many of the time. */
const IDLE_SHARE = 20;
/** As if claims had passed all that is due. */
const EVERYTHING = new Array<Reach>(MAX_PRIORITY + 1).fill({
  floorMs: Number.POSITIVE_INFINITY,
  endMs: Number.POSITIVE_INFINITY,
});

/** Sweeps a worker's queues beside its claims, which never look back: finds the due jobs that they passed. */
export class Sweeper implements BackgroundPart {
  readonly #options: SweeperOptions;
  readonly #keptPlans: KeptPlans;
  readonly #alarm = new Condition();
  /** Queues where jobs come, or whose pass is not over. */
  readonly #awake = new Set<SweptQueue>();
  /** What is left of the round through all queues. */
  #round: SweptQueue[] = [];
  #nextRoundMs = Number.NEGATIVE_INFINITY;
  #nextIdleMs = Number.NEGATIVE_INFINITY;
  /** Until then nothing is due, as far as it knew when it went to sleep. */
  #asleepUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#keptPlans = new KeptPlans(options);
  }

  /** Whether other workers sweep the same queues for the same kinds. */
  get hasPeers(): boolean {
    return this.#options.crew() > 1;
  }

  /** Jobs come in this queue, or its sweep is urgent. */
  awaken(queue: SweptQueue): void {
    const soon = queue.sweep.urgent || this.#dueMs(queue, performance.now()) < this.#asleepUntilMs;
    if (this.#awake.has(queue) && !soon) return;
    this.#awake.add(queue);
    this.#alarm.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { events, retries } = this.#options;
    this.#nextRoundMs = performance.now() + jitter(this.#options.idleMs());
    const delays = new Doubling(250);
    while (!signal.aborted) {
      this.#alarm.clear();
      const nowMs = performance.now();
      const batch = this.#next(nowMs);
      if (batch.length === 0) {
        this.#asleepUntilMs = this.#nextMs(nowMs);
        await this.#alarm.wait(Math.max(this.#asleepUntilMs - nowMs, 1), signal);
        this.#asleepUntilMs = Number.NEGATIVE_INFINITY;
        continue;
      }
      const ofRound = batch.every((queue) => !this.#awake.has(queue));
      try {
        await this.#sweep(batch);
        delays.reset();
        const endMs = performance.now();
        if (ofRound) this.#nextIdleMs = endMs + (endMs - nowMs) * IDLE_SHARE;
      } catch (error) {
        events.emit('error', { error, during: 'sweeping' });
        if (await retries.sleep(jitter(delays.next()), signal)) delays.reset();
      }
    }
  }

  /** For a drain: goes on until enough is found, or to the end of the queue; returns whether it got there. */
  async sweepNow(queue: SweptQueue, signal: AbortSignal): Promise<boolean> {
    while (!queue.sweep.ended) {
      if (signal.aborted || queue.overlooked.size >= ENOUGH) return false;
      await this.#sweep([queue], EVERYTHING);
    }
    return true;
  }

  /** What to read now: the queues that are awake, or else the next idle ones. */
  #next(nowMs: number): SweptQueue[] {
    const due = [...this.#awake].filter((queue) => this.#dueMs(queue, nowMs) <= nowMs);
    if (due.length > 0) return alike(due);
    if (nowMs < this.#nextIdleMs) return [];
    if (this.#round.length === 0 && nowMs >= this.#nextRoundMs) {
      this.#round = this.#options
        .queues()
        .filter((queue) => !this.#awake.has(queue) && !queue.attempts.paused)
        .reverse();
      this.#nextRoundMs = nowMs + jitter(this.#options.idleMs());
    }
    const next = alike(this.#round.slice(-MAX_QUEUES).reverse());
    this.#round.length -= next.length;
    return next;
  }

  #nextMs(nowMs: number): number {
    const idleMs = this.#round.length > 0 ? this.#nextIdleMs : Math.max(this.#nextRoundMs, this.#nextIdleMs);
    return Math.min(idleMs, ...[...this.#awake].map((queue) => this.#dueMs(queue, nowMs)));
  }

  #dueMs({ sweep, overlooked, bands, quietMs, attempts }: SweptQueue, nowMs: number): number {
    // Its resume asks for an urgent sweep.
    if (attempts.paused) return Number.POSITIVE_INFINITY;
    if (overlooked.size >= ENOUGH) return nowMs + WAIT_MS;
    return sweep.dueMs(quietMs, this.#options.idleMs(), bands.backlog, this.#options.crew());
  }

  async #sweep(batch: readonly SweptQueue[], all?: readonly Reach[]): Promise<void> {
    const { runner, tables, workerId } = this.#options;
    const [first] = batch;
    if (first === undefined) return;
    const startMs = performance.now();
    for (const { sweep } of batch) sweep.begin();
    const question = {
      looks: batch.map(({ queue, bands, sweep }) => ({
        queue,
        passed: all ?? bands.passed,
        spanMs: sweep.spanMs,
        after: sweep.after,
      })),
      kinds: first.kinds,
      workerId,
      slice: batch.some(({ sweep }) => sweep.found) ? FOUND_SLICE : SLICE,
    };
    const anew = () => findOverlooked(runner, tables, question);
    const { found, stopped } =
      batch.length > 1
        ? await anew()
        : await this.#keptPlans.send(
            (ifTableIs) => findOverlookedByKeptPlan(runner, tables, { ...question, ifTableIs }),
            anew,
          );
    const endMs = performance.now();
    const idleMs = this.#options.idleMs();
    for (const queue of batch) {
      const after = stopped?.queue === queue.queue ? stopped.after : undefined;
      const places = (found.get(queue.queue) ?? []).filter(({ id }) => !queue.isSetAside?.(id));
      queue.overlooked.add(places);
      queue.sweep.note({ after, found: places.length, startMs, endMs });
      if (places.length > 0) queue.wake();
      const idle = queue.sweep.dueMs(queue.quietMs, idleMs, false) >= endMs + idleMs;
      if (!idle || !queue.sweep.ended) this.#awake.add(queue);
      else this.#awake.delete(queue);
      // The others were not read.
      if (after !== undefined) break;
    }
    if (stopped === undefined) return;
    const at = batch.findIndex(({ queue }) => queue === stopped.queue);
    this.#round.push(
      ...batch
        .slice(at + 1)
        .filter((queue) => !this.#awake.has(queue))
        .reverse(),
    );
  }
}

/** As many as one statement reads: the first, and those after it of other queues with the same kinds. */
function alike(queues: readonly SweptQueue[]): SweptQueue[] {
  const [first] = queues;
  if (first === undefined) return [];
  const names = new Set<string>();
  const end = queues.findIndex(({ queue, kinds }) => {
    if (names.has(queue) || names.size >= MAX_QUEUES || !sameKinds(kinds, first.kinds)) return true;
    names.add(queue);
    return false;
  });
  return queues.slice(0, end < 0 ? queues.length : end);
}

function sameKinds(some: readonly string[], others: readonly string[]): boolean {
  if (some === others) return true;
  return some.length === others.length && some.every((kind, index) => kind === others[index]);
}
