import { Limits } from './limits.ts';
import { limitsIn, type MakeLimits } from './limits-in.ts';
import type { LimitTables } from './sql/limit-tables.ts';

/**
 * The limits of an app whose code, which declares them, is not known: any queue may have limits, and groups.
 * As if none had any, `queue.check` would say of live jobs that their groups are to be taken off.
 */
class UndeclaredLimits extends Limits {
  override has(): boolean {
    return true;
  }

  override isGrouped(): boolean {
    return true;
  }
}

/** As `limitsIn`, where the limits that the app declares are not known. */
export function undeclaredLimits(tables: LimitTables): MakeLimits {
  // It checks the tables.
  const limits = limitsIn(tables, {});
  return (queue) => {
    const { limitTables, declared } = limits(queue);
    return new UndeclaredLimits(queue, limitTables, declared);
  };
}
