import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../index.ts';

/**
 * Whether the transaction that asks has itself written the row `alias`, in one of its savepoints too: no
 * other transaction's row is visible before it has ended, so one that is still in progress is this one.
 *
 * A row has only the lower half of its writer's number. Those of this transaction are at most half a turn
 * above its own, which gives the other half. Rows that were frozen long ago (1 and 2) do not match any
 * transaction.
 */
export function writtenHere(alias: string): SQL {
  const own = 'pg_current_xact_id()::text::int8';
  const above = `mod(${alias}.xmin::text::int8 - mod(${own}, 4294967296) + 4294967296, 4294967296)`;
  return sql.raw(`case when ${alias}.xmin::text::int8 > 2 and ${above} < 2147483648
      then pg_xact_status((${own} + ${above})::text::xid8) = 'in progress' else false end`);
}

/** Whether this is a transaction, as opposed to a database whose every statement is one of its own. */
export function isTransaction(db: Executor): boolean {
  return typeof Reflect.get(Object(db), 'rollback') === 'function';
}

/** For callers without TypeScript. @throws TypeError unless it is a transaction */
export function checkTransaction(caller: string, tx: Executor, instead: string): void {
  if (isTransaction(tx)) return;
  throw new TypeError(
    `${caller} takes a transaction, as db.transaction(async (tx) => …) or inTransaction hands it over; ` +
      instead,
  );
}
