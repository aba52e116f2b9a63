import { setTimeout as delay } from 'node:timers/promises';
import { defineJob, type Queue, unvalidated } from 'drizzle-queue';
import type { Connection } from '../support/test-database.ts';
import type { GroupWork } from './group-work.ts';

/** Stands for no group, in a queue that has none. */
export const NO_GROUP = '-';

/** What is enqueued for the groups of one queue. */
export interface GroupLoad {
  readonly queue: string;
  readonly groups: readonly string[];
  /** So many jobs of each group are kept waiting. */
  readonly waiting: number;
  readonly work: () => Omit<GroupWork, 'group'>;
  readonly cost?: () => number;
}

/** A queue's kind has its name. */
export function groupJob(queue: string) {
  return defineJob(queue, { queue, payload: unvalidated<GroupWork>() });
}

/**
 * Keeps jobs waiting in groups until it is told to end. It alone enqueues for them, one statement after the other, so their ids are in the
 * order of the commits.
 */
export class Producer {
  readonly #database: Connection;
  readonly #queue: Queue;
  readonly #loads: readonly GroupLoad[];
  #ending = false;
  #over: Promise<void> = Promise.resolve();
  /** The ids of all jobs. */
  readonly enqueued: number[] = [];

  constructor(database: Connection, queue: Queue, loads: readonly GroupLoad[]) {
    this.#database = database;
    this.#queue = queue;
    this.#loads = loads;
  }

  start(): void {
    this.#ending = false;
    this.#over = this.#run();
  }

  async end(): Promise<void> {
    this.#ending = true;
    await this.#over;
  }

  async #run(): Promise<void> {
    while (!this.#ending) {
      await this.fill();
      await delay(100);
    }
  }

  async fill(loads = this.#loads): Promise<void> {
    const rows = await this.#database.client<{ name: string; n: number }[]>`
      select queue || '/' || coalesce(group_key, ${NO_GROUP}) as name, count(*)::int as n from queue_jobs where worker_id is null group by 1`;
    const waiting = new Map(rows.map(({ name, n }) => [name, n]));
    for (const { queue, groups, waiting: wanted, work, cost } of loads) {
      const entries = groups.flatMap((group) => {
        const missing = wanted - (waiting.get(`${queue}/${group}`) ?? 0);
        return Array.from({ length: Math.max(missing, 0) }, () => ({
          payload: { ...work(), group },
          group: group === NO_GROUP ? undefined : group,
          cost: cost?.(),
        }));
      });
      if (entries.length === 0) continue;
      const results = await this.#queue.enqueueMany(this.#database.db, groupJob(queue), entries);
      this.enqueued.push(...results.map(({ id }) => id));
    }
  }
}
