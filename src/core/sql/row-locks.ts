import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { isDistributed } from './statement-context.ts';

/**
 * What a statement does about rows that another transaction has locked: `wait` for them; wait `briefly`, and
 * fail with 55P03 when that is not enough; or `skip` them.
 */
export type RowLocks = 'wait' | 'briefly' | 'skip';

/** Below the `deadlock_timeout` of 1 s: a brief wait ends before Postgres looks for a deadlock. */
export const BRIEFLY = '100ms';

/**
 * For a `FROM` that is read before any row is locked, after its other items: limits every wait for a lock by
 * the rest of the transaction, on every driver and behind every pooler. Outside of a transaction that is this
 * statement; inside one of the user's it would outlast it, so it must not be sent there. `skip` has it too:
 * triggers and foreign keys of the app may lock further rows.
 *
 * On Citus it would limit nothing on the nodes that wait, and Citus fails where a volatile function stands
 * beside locked rows. There `briefly` waits as long as it takes, so writes about held jobs `skip` instead.
 */
export function lockPatience(tables: QueueTables, locks: RowLocks): SQL {
  return locks === 'wait' || isDistributed(tables)
    ? sql``
    : sql` cross join set_config('lock_timeout', ${BRIEFLY}::text, true) as patience`;
}
