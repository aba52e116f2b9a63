import type { Runner } from '../../../core/sql/executor.ts';
import { isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { Rounds } from '../../../core/worker/base/rounds.ts';
import { type FoundStep, findSteps, findStepsOfOne } from '../queries/find-steps.ts';
import type { TablesOfWorkflows } from '../sql/workflow-tables.ts';

export interface StepFinderOptions {
  readonly db: Runner;
  readonly tables: TablesOfWorkflows;
  readonly queue: string;
}

/** The more there are, the later the answer to each, and the sooner it is too late for all. */
const MOST_TOGETHER = 100;

/**
 * Reads the recorded steps of one queue's jobs: where many resume at once, one statement reads those of all
 * that have asked while the one before was under way.
 */
export class StepFinder {
  readonly #options: StepFinderOptions;
  readonly #rounds = new Rounds((ids: readonly number[]) => this.#together(ids), { most: MOST_TOGETHER });

  constructor(options: StepFinderOptions) {
    this.#options = options;
  }

  /**
   * What asks for the steps of a job: with others the first time, and by a statement of its own where they
   * get no answer together, since one of the others may be why. It does so at once where they are refused.
   *
   * @throws what the driver throws
   */
  asking(id: number): () => Promise<readonly FoundStep[]> {
    const { db, tables, queue } = this.#options;
    let isFirst = true;
    return async () => {
      if (isFirst) {
        isFirst = false;
        const found = await this.#rounds.add(id);
        if (found !== undefined) return found.get(id) ?? [];
      }
      return await findStepsOfOne(db, tables, { id, queue });
    };
  }

  /** `undefined`: refused, as where all together take longer than `statement_timeout`. */
  async #together(ids: readonly number[]): Promise<ReadonlyMap<number, readonly FoundStep[]> | undefined> {
    const { db, tables, queue } = this.#options;
    try {
      return await findSteps(db, tables, { queue, ids });
    } catch (error) {
      if (ids.length === 1 || isAboutTheServer(error)) throw error;
      return undefined;
    }
  }
}
