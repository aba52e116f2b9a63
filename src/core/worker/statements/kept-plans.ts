import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { isDistributed } from '../../sql/statement-context.ts';
import type { TableSize } from '../../sql/table-size.ts';
import type { WorkerRunner } from './statements.ts';

/** How long a table that was found to be of neither size is not tested again. */
const OTHER_MS = 10_000;

export interface KeptPlansOptions {
  readonly runner: Pick<WorkerRunner, 'prepares'>;
  readonly tables: QueueTables;
}

/** Tables that have shrunk since this process began, by their names, in whichever database. */
const shrunk = new Set<string>();

/**
 * Which form of a statement a worker sends next: one whose plan is kept, for tables of the size that this one
 * had lately, or the one that is planned anew each time.
 *
 * A table begins as small, and is taken for grown once it was found not to be. Where a form has found that it
 * has shrunk, Postgres may have made plans anew meanwhile, for reading all of it. When it has grown again,
 * statements about other queues would run by these plans, too. So no statement of this process uses the form
 * for grown tables any more.
 */
export class KeptPlans {
  readonly #options: KeptPlansOptions;
  readonly #name: string;
  #hasGrown = false;
  /** When it was last found not to be small. */
  #notSmallMs = Number.NEGATIVE_INFINITY;

  constructor(options: KeptPlansOptions) {
    this.#options = options;
    this.#name = quotedName(options.tables.queueJobs);
  }

  /** `undefined`: the next statement is to be planned anew. */
  get size(): TableSize | undefined {
    const { runner, tables } = this.#options;
    if (runner.prepares !== true || isDistributed(tables)) return undefined;
    if (this.#hasGrown && !shrunk.has(this.#name)) return 'grown';
    return performance.now() - this.#notSmallMs > OTHER_MS ? 'small' : undefined;
  }

  /**
   * A statement for tables of this size has done nothing, because the table is of another.
   * @param isSmall whether the table is small. Where it is of the right size, another one of the statement is
   *   too large.
   */
  noteOther(size: TableSize, isSmall = size === 'grown'): void {
    if (size === 'grown' && isSmall) {
      shrunk.add(this.#name);
      return;
    }
    this.#notSmallMs = performance.now();
    this.#hasGrown = size === 'small' && !isSmall;
  }

  /**
   * Sends a statement in the form that fits.
   * @param byKeptPlan returns `undefined` where the table is of another size
   */
  async send<T>(
    byKeptPlan: (ifTableIs: TableSize) => Promise<T | undefined>,
    anew: () => Promise<T>,
  ): Promise<T> {
    for (let { size } = this; size !== undefined; { size } = this) {
      const answer = await byKeptPlan(size);
      if (answer !== undefined) return answer;
      this.noteOther(size);
    }
    return await anew();
  }
}
