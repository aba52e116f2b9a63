import type { QueueOfLimits } from '../../core/queue/queue-limits.ts';
import type { QueueTables } from '../../core/schema/create-queue-tables.ts';
import { Limits } from './limits.ts';
import { withGrouping } from './sql/group-statements.ts';
import type { LimitTables } from './sql/limit-tables.ts';

/**
 * Those of a process that does not know the code of the app: any queue may have limits, and groups. As if
 * none had any, `queue.check` would say of live jobs that their groups are to be taken off.
 */
export class UndeclaredLimits extends Limits {
  readonly #given: QueueTables;
  readonly #tellsGroups: boolean;

  /** @param tellsGroups see `notDeclared` */
  constructor(queue: QueueOfLimits, tables: LimitTables, tellsGroups: boolean) {
    super(queue, tables, new Map());
    this.#given = queue.tables;
    this.#tellsGroups = tellsGroups;
  }

  override has(): boolean {
    return true;
  }

  override isGrouped(): boolean {
    return true;
  }

  override get statementTables(): QueueTables {
    return this.#tellsGroups ? withGrouping(this.#given, this.limitTables, undefined) : super.statementTables;
  }
}
