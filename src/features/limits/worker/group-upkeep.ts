import type { Runner } from '../../../core/sql/executor.ts';
import { Condition } from '../../../core/time/condition.ts';
import { Doubling } from '../../../core/time/doubling.ts';
import { jitter } from '../../../core/time/jitter.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { inHalves } from '../../../core/worker/base/in-halves.ts';
import { isAboutAccess, isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { adoptJobs, MAX_ADOPTED } from '../queries/adopt-jobs.ts';
import { findPlainJobs } from '../queries/find-plain-jobs.ts';
import { noteForgottenGroups, noteFreedGroups } from '../queries/note-groups.ts';
import { PRUNED_AT_ONCE, pruneGroups } from '../queries/prune-groups.ts';
import type { GroupTables } from '../sql/limit-tables.ts';

/** A queue whose jobs are in groups. */
export interface GroupedQueue {
  readonly queue: string;
  /** The window of the rate of each group, in milliseconds. */
  readonly ratePerMs: number | undefined;
  /** There may be something to claim. */
  wake(): void;
}

export interface GroupUpkeepOptions {
  readonly db: Runner;
  readonly tables: GroupTables;
  readonly queues: readonly GroupedQueue[];
  readonly events: WorkerEmitter;
}

const INTERVAL_MS = 5_000;
/** Every so-many times it looks at the groups, too: the workers that know of gone ones may be gone. */
const LOOK_EVERY = 6;
/** Where fewer of a slice were of no use, the next one waits for the next look. */
const WORTH_PRUNING = PRUNED_AT_ONCE / 10;

/**
 * Keeps the groups of a worker's queues in order: takes in jobs without a group, notes the groups that were
 * forgotten, a thousand at a time, and removes those that are no longer used, as fast as they come. It also
 * notes those whose jobs workers that are gone have left behind. For that it reads the rows of all groups,
 * which may take seconds. Claims wait for none of it.
 */
export class GroupUpkeep implements BackgroundPart {
  readonly #options: GroupUpkeepOptions;
  /** Where the next look goes on, by queue. */
  readonly #noted = new Map<string, string>();
  readonly #pruned = new Map<string, string>();
  /** Queues that had more groups of no use than were removed in one round. */
  readonly #unfinished = new Set<string>();
  /** Queues in which jobs may have been left behind: one may be told of again while its look is under way. */
  readonly #left = new Set<GroupedQueue>();
  readonly #told = new Condition();
  /** When a look that has failed is made again. */
  readonly #delays = new Doubling();
  #againMs = Number.POSITIVE_INFINITY;
  #markReady: () => void = () => undefined;
  /** Fulfilled when it has looked after each queue once: until then, one may look emptier than it is. */
  readonly ready = new Promise<void>((resolve) => {
    this.#markReady = resolve;
  });

  constructor(options: GroupUpkeepOptions) {
    this.#options = options;
  }

  /** Workers are gone, so jobs of this queue may be free. */
  seekFreed(queue: GroupedQueue): void {
    this.#left.add(queue);
    this.#told.signal();
  }

  /** The database answers again: a look that has failed need not wait longer. */
  askSoon(): void {
    this.#told.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { queues } = this.#options;
    for (let round = 0; !signal.aborted; round++) {
      const looks = round % LOOK_EVERY === 0;
      if (looks) for (const queue of queues) this.#left.add(queue);
      await this.#lookForLeft(signal);
      await this.#forEach(queues, signal, async (queue) => {
        if (looks) await this.#look(queue);
        await this.#adopt(queue, looks, signal);
      });
      this.#markReady();
      await this.#forEach(queues, signal, async (queue) => {
        if (looks || this.#unfinished.has(queue.queue)) await this.#prune(queue, signal);
      });
      const nextMs = performance.now() + jitter(INTERVAL_MS);
      while (!signal.aborted && performance.now() < nextMs) {
        const told = await this.#told.wait(Math.min(nextMs, this.#againMs) - performance.now(), signal);
        if (told || this.#isDueAgain) await this.#lookForLeft(signal);
      }
    }
  }

  /** One after the other; that of one may fail without the others'. */
  async #forEach(
    queues: Iterable<GroupedQueue>,
    signal: AbortSignal,
    carryOut: (queue: GroupedQueue) => Promise<void>,
    during = (queue: string) => `looking after the groups of '${queue}'`,
  ): Promise<void> {
    for (const queue of queues) {
      if (signal.aborted) return;
      try {
        await carryOut(queue);
      } catch (error) {
        this.#options.events.emit('error', { error, during: during(queue.queue) });
      }
    }
  }

  /** A look that fails is made again after a while. */
  async #lookForLeft(signal: AbortSignal): Promise<void> {
    const { db, tables } = this.#options;
    const look = async (queue: GroupedQueue) => {
      this.#left.delete(queue);
      try {
        if ((await noteFreedGroups(db, tables, queue.queue)) > 0) queue.wake();
      } catch (error) {
        this.#left.add(queue);
        throw error;
      }
    };
    const during = (queue: string) => `looking for jobs of '${queue}' that workers left behind`;
    this.#told.clear();
    await this.#forEach([...this.#left], signal, look, during);
    if (this.#left.size === 0) this.#delays.reset();
    this.#againMs =
      this.#left.size === 0 ? Number.POSITIVE_INFINITY : performance.now() + this.#delays.next();
  }

  /** What takes long is interrupted by it: jobs that were left behind should not wait. */
  async #betweenStatements(signal: AbortSignal): Promise<void> {
    if (this.#told.signalled || this.#isDueAgain) await this.#lookForLeft(signal);
  }

  get #isDueAgain(): boolean {
    return performance.now() >= this.#againMs;
  }

  async #adopt(queue: GroupedQueue, looks: boolean, signal: AbortSignal): Promise<void> {
    const { db, tables } = this.#options;
    for (let found = MAX_ADOPTED; found >= MAX_ADOPTED && !signal.aborted; ) {
      await this.#betweenStatements(signal);
      try {
        found = await adoptJobs(db, tables, queue.queue);
        if (found > 0) queue.wake();
      } catch (error) {
        // Where all rows refuse, it costs many statements.
        if (!looks || !mayBeOfRow(error)) throw error;
        found = await this.#adoptInHalves(queue, signal);
      }
    }
  }

  /**
   * Adopts jobs, apart from those whose rows refuse it. Returns how many it has found, or 0 where it has to
   * end.
   *
   * @throws what the first one is refused with, where it has adopted none
   */
  async #adoptInHalves({ queue, wake }: GroupedQueue, signal: AbortSignal): Promise<number> {
    const { db, tables } = this.#options;
    const untilMs = performance.now() + INTERVAL_MS;
    const isOver = () => signal.aborted || performance.now() > untilMs;
    const ids = await findPlainJobs(db, tables, queue);
    const refusals: unknown[] = [];
    let adopted = 0;
    await inHalves(ids, {
      write: async (part) => {
        if (!isOver()) adopted += await adoptJobs(db, tables, queue, part);
      },
      refuse: (_, error) => void refusals.push(error),
      mayBeOfRow,
    });
    if (adopted > 0) wake();
    else if (refusals.length > 0) throw refusals[0];
    return adopted === 0 || isOver() ? 0 : ids.length;
  }

  async #look({ queue }: GroupedQueue): Promise<void> {
    const { db, tables } = this.#options;
    const noted = await noteForgottenGroups(db, tables, queue, this.#noted.get(queue) ?? '');
    this.#noted.set(queue, noted ?? '');
  }

  /**
   * Goes on as long as it is worth it, since a queue may have a new group for each job; but whatever else
   * there is to look after waits for no more than one interval.
   */
  async #prune({ queue, ratePerMs }: GroupedQueue, signal: AbortSignal): Promise<void> {
    const { db, tables } = this.#options;
    const untilMs = performance.now() + INTERVAL_MS;
    this.#unfinished.delete(queue);
    for (let pruned = PRUNED_AT_ONCE; pruned >= WORTH_PRUNING && !signal.aborted; ) {
      await this.#betweenStatements(signal);
      if (performance.now() > untilMs) {
        this.#unfinished.add(queue);
        return;
      }
      const after = this.#pruned.get(queue) ?? '';
      const slice = await pruneGroups(db, tables, { queue, after, ratePerMs });
      this.#pruned.set(queue, slice.last ?? '');
      pruned = slice.last === undefined ? 0 : slice.pruned;
    }
  }
}

function mayBeOfRow(error: unknown): boolean {
  return !isAboutTheServer(error) && !isAboutLocks(error) && !isAboutAccess(error);
}
