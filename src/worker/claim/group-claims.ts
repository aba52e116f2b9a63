import { admitGroups, MAX_NOTES } from '../../queries/admit-groups.ts';
import { type ClaimLimits, claimGroupedJobs } from '../../queries/claim-grouped-jobs.ts';
import { noteFreedGroups } from '../../queries/note-groups.ts';
import type { Runner } from '../../sql/executor.ts';
import type { GroupTables } from '../../sql/grouping.ts';
import type { ClaimAnswer } from './claims.ts';

export interface GroupClaimsOptions {
  readonly runner: Runner;
  readonly tables: GroupTables;
  readonly queue: string;
  readonly workerId: number;
  readonly kinds: readonly string[];
  /** The limits of the queue, at this moment. */
  readonly limits: () => ClaimLimits;
}

/** The claims of a queue whose jobs are in groups: each after folding in what was noted for them. */
export class GroupClaims {
  readonly #options: GroupClaimsOptions;
  #seekFreed = true;

  constructor(options: GroupClaimsOptions) {
    this.#options = options;
  }

  /** Workers are gone, or may have been before: nobody else tells claims of the jobs that they held. */
  seekFreed(): void {
    this.#seekFreed = true;
  }

  /** @throws what the driver throws; then the server may have carried the claim out all the same */
  async next(demand: number, begins: boolean): Promise<ClaimAnswer> {
    const { runner, tables, queue, workerId, kinds, limits } = this.#options;
    if (this.#seekFreed) {
      this.#seekFreed = false;
      await noteFreedGroups(runner, tables, queue).catch((error: unknown) => {
        this.#seekFreed = true;
        throw error;
      });
    }
    const noted = await admitGroups(runner, tables, queue);
    const { jobs, more, waitMs } = await claimGroupedJobs(runner, tables, {
      queue,
      kinds,
      workerId,
      limit: demand,
      limits: limits(),
      beginning: begins ? 1 : 0,
    });
    // What is noted later is told of, or found by the watch.
    const goesOn = (more && jobs.length > 0) || noted >= MAX_NOTES;
    return { jobs, among: false, endMs: performance.now(), goesOn, waitMs };
  }
}
