import type { Runner } from '../../../core/sql/executor.ts';
import { jitter } from '../../../core/time/jitter.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { inHalves } from '../../../core/worker/base/in-halves.ts';
import { isAboutAccess, isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { adoptJobs } from '../queries/adopt-jobs.ts';
import { findPlainJobs } from '../queries/find-plain-jobs.ts';
import { noteForgottenGroups } from '../queries/note-groups.ts';
import { PRUNED_AT_ONCE, pruneGroups } from '../queries/prune-groups.ts';
import type { GroupTables } from '../sql/limit-tables.ts';
import { MAX_ADOPTED } from '../sql/plain-jobs.ts';

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
/** Every so-many times it looks at the groups, too. */
const LOOK_EVERY = 6;
/** Where fewer of a slice were of no use, the next one waits for the next look. */
const WORTH_PRUNING = PRUNED_AT_ONCE / 10;

/**
 * Keeps the groups of a worker's queues in order: takes in jobs without a group, notes the groups that were
 * forgotten, a thousand at a time, and removes those that are no longer used, as fast as they come. Claims
 * wait for none of it.
 */
export class GroupUpkeep implements BackgroundPart {
  readonly #options: GroupUpkeepOptions;
  /** Where the next look goes on, by queue. */
  readonly #noted = new Map<string, string>();
  readonly #pruned = new Map<string, string>();
  /** Queues that had more groups of no use than were removed in one round. */
  readonly #unfinished = new Set<string>();
  #markReady: () => void = () => undefined;
  /** Fulfilled when it has looked after each queue once: until then, one may look emptier than it is. */
  readonly ready = new Promise<void>((resolve) => {
    this.#markReady = resolve;
  });

  constructor(options: GroupUpkeepOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    for (let round = 0; !signal.aborted; round++) {
      const looks = round % LOOK_EVERY === 0;
      await this.#forEach(signal, async (queue) => {
        if (looks) await this.#look(queue);
        await this.#adopt(queue, looks, signal);
      });
      this.#markReady();
      await this.#forEach(signal, async (queue) => {
        if (looks || this.#unfinished.has(queue.queue)) await this.#prune(queue, signal);
      });
      await sleep(jitter(INTERVAL_MS), signal);
    }
  }

  /** One after the other; that of one may fail without the others'. */
  async #forEach(signal: AbortSignal, carryOut: (queue: GroupedQueue) => Promise<void>): Promise<void> {
    const { queues, events } = this.#options;
    for (const queue of queues) {
      if (signal.aborted) return;
      try {
        await carryOut(queue);
      } catch (error) {
        events.emit('error', { error, during: `looking after the groups of '${queue.queue}'` });
      }
    }
  }

  async #adopt(queue: GroupedQueue, looks: boolean, signal: AbortSignal): Promise<void> {
    const { db, tables } = this.#options;
    for (let found = MAX_ADOPTED; found >= MAX_ADOPTED && !signal.aborted; ) {
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
