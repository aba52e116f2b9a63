import type { Runner } from '../../../core/sql/executor.ts';
import { Rounds } from '../../../core/worker/base/rounds.ts';
import { type FoundStep, findSteps, findStepsOfOne } from '../queries/find-steps.ts';
import type { TablesOfWorkflows } from '../sql/workflow-tables.ts';

export interface StepFinderOptions {
  readonly db: Runner;
  readonly tables: TablesOfWorkflows;
  readonly queue: string;
}

/**
 * Reads the recorded steps of one queue's jobs: where many resume at once, one statement reads those of all
 * that have asked while the one before was under way.
 */
export class StepFinder {
  readonly #options: StepFinderOptions;
  readonly #rounds: Rounds<number, ReadonlyMap<number, readonly FoundStep[]>>;

  constructor(options: StepFinderOptions) {
    this.#options = options;
    const { db, tables, queue } = options;
    this.#rounds = new Rounds((ids) => findSteps(db, tables, { queue, ids }));
  }

  /**
   * What asks for the steps of a job: with others the first time, and then by a statement of its own, since
   * one of the others may be why it got no answer.
   *
   * @throws what the driver throws
   */
  asking(id: number): () => Promise<readonly FoundStep[]> {
    const { db, tables, queue } = this.#options;
    let isFirst = true;
    return async () => {
      if (!isFirst) return await findStepsOfOne(db, tables, { id, queue });
      isFirst = false;
      return (await this.#rounds.add(id)).get(id) ?? [];
    };
  }
}
