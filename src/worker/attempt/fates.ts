import { findFates, type JobFate } from '../../queries/find-fates.ts';
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
 * Asks where jobs of one queue are now: in one statement what is asked in one turn of the event loop, as when
 * the jobs of a batch end together.
 */
export class Fates {
  readonly #options: FatesOptions;
  #asked: HeldJob[] = [];
  #answer: Promise<ReadonlyMap<number, JobFate>> | undefined;

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
    await nextTurn();
    const { db, tables, queue } = this.#options;
    const asked = this.#asked;
    this.#asked = [];
    this.#answer = undefined;
    return await findFates(db, tables, queue, asked);
  }
}
