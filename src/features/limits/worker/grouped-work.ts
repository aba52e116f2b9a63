import type { Runner } from '../../../core/sql/executor.ts';
import { NO_RUNS, type Runs } from '../../../core/worker/begin/runs.ts';
import type {
  ClaimGroups,
  GroupClaims,
  GroupClaimsOptions,
  HandlerHoldsOptions,
} from '../../../core/worker/claim/claim-groups.ts';
import type { HandlerHolds } from '../../../core/worker/settle/handler-holds.ts';
import { findDueGroups } from '../queries/find-due-groups.ts';
import { type GroupSettings, keepsPlace } from '../settings/limit-settings.ts';
import type { GroupTables } from '../sql/limit-tables.ts';
import { ClaimsByTurns } from './claims-by-turns.ts';
import { GroupHandlerHolds } from './group-handler-holds.ts';
import { SerialRuns } from './serial-runs.ts';

/** The groups of a queue, with their limits as they are declared. */
export interface QueueGroups extends GroupSettings {
  readonly tables: GroupTables;
}

/** How a worker claims and runs the jobs of one queue by its groups. */
export class GroupedWork implements ClaimGroups {
  readonly keepPlaces: boolean;
  readonly runs: Runs;
  readonly #groups: QueueGroups;

  constructor(groups: QueueGroups) {
    const { serial } = groups;
    this.#groups = groups;
    this.keepPlaces = keepsPlace(serial);
    this.runs = serial === undefined ? NO_RUNS : new SerialRuns(serial);
  }

  claims(options: GroupClaimsOptions): GroupClaims {
    return new ClaimsByTurns({ ...options, groups: this.#groups });
  }

  handlerHolds(options: HandlerHoldsOptions): HandlerHolds {
    return new GroupHandlerHolds({ ...options, tables: this.#groups.tables });
  }

  async findDue(runner: Runner, queues: readonly string[]) {
    return await findDueGroups(runner, this.#groups.tables, queues);
  }
}
