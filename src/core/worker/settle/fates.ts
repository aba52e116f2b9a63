import { findFates, type JobFate } from '../../queries/settle/find-fates.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import type { HeldJob } from '../../sql/fence.ts';
import { Rounds } from '../base/rounds.ts';

export interface FatesOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  readonly queue: string;
}

/** Asks where jobs of one queue are now, after their handlers have ended by `complete(tx)`. */
export class Fates {
  readonly #rounds: Rounds<HeldJob, ReadonlyMap<number, JobFate>>;

  constructor({ db, tables, queue }: FatesOptions) {
    this.#rounds = new Rounds((jobs) => findFates(db, tables, queue, jobs));
  }

  /** `undefined`: it is nowhere. @throws what the driver throws */
  async of(job: HeldJob): Promise<JobFate | undefined> {
    return (await this.#rounds.add(job)).get(job.id);
  }
}
