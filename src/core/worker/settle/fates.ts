import { findFates, type JobFate } from '../../queries/settle/find-fates.ts';
import { nextTurn } from '../../runtime.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import type { HeldJob } from '../../sql/fence.ts';

export interface FatesOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  readonly queue: string;
}

/**
 * Asks where jobs of one queue are now, one question at a time: what is asked while one is under way, or in
 * one turn of the event loop, goes into the next. So the more handlers end by `complete(tx)`, the less each
 * costs.
 */
export class Fates {
  readonly #options: FatesOptions;
  #asked: HeldJob[] = [];
  #answer: Promise<ReadonlyMap<number, JobFate>> | undefined;
  /** The question that is under way. Never rejects. */
  #before: Promise<unknown> = Promise.resolve();

  constructor(options: FatesOptions) {
    this.#options = options;
  }

  /** `undefined`: it is nowhere. @throws what the driver throws */
  async of(job: HeldJob): Promise<JobFate | undefined> {
    this.#asked.push(job);
    this.#answer ??= this.#ask();
    return (await this.#answer).get(job.id);
  }

  async #ask(): Promise<ReadonlyMap<number, JobFate>> {
    await Promise.all([nextTurn(), this.#before]);
    const { db, tables, queue } = this.#options;
    const asked = this.#asked;
    this.#asked = [];
    this.#answer = undefined;
    const answer = findFates(db, tables, queue, asked);
    this.#before = answer.catch(() => undefined);
    return await answer;
  }
}
