import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Database, queryRows } from '../../sql/executor.ts';
import { arrayText } from '../../sql/fence.ts';
import { amongFree, freeRows } from '../../sql/free-rows.ts';
import { handOver } from '../../sql/hold-end.ts';
import { isFree } from '../../sql/is-free.ts';
import { hasNoTransactions } from '../../sql/limit-time.ts';
import { transact } from '../../sql/transact.ts';

export interface TrialClaim {
  readonly queue: string;
  readonly ids: readonly number[];
  readonly workerId: number | null;
}

class Undo extends Error {}

/**
 * Claims these jobs in a transaction that it rolls back. Returns the error with which the database refuses
 * that; `undefined` when it would accept it, and for a driver without transactions.
 *
 * **Under concurrency.** It waits for no lock: a row that another transaction has locked is left out. Claims
 * leave out the rows of this one, for the milliseconds that it takes.
 */
export async function tryClaim(db: Database, tables: QueueTables, claim: TrialClaim): Promise<unknown> {
  try {
    await transact(db, async (tx) => {
      // What a constraint trigger would refuse at the commit, it refuses here.
      await tx.execute(sql`set constraints all immediate`);
      await queryRows(tx, tables, tryClaimQuery(tables, claim));
      throw new Undo();
    });
  } catch (error) {
    return error instanceof Undo || hasNoTransactions(error) ? undefined : error;
  }
}

/** @endsHold as claimJobsQuery, in a transaction that is rolled back */
export function tryClaimQuery(tables: QueueTables, { queue, ids, workerId }: TrialClaim): SQL {
  const named = sql`any(array(select unnest(${arrayText(ids)}::text::int8[])))`;
  const claimable = sql`j.queue = ${queue} and j.id = ${named}
        and ${isFree(tables)}`;
  return handOver(tables, {
    ctes: sql`
    with ${freeRows(tables, claimable)}`,
    holder: sql`${workerId}::int8`,
    claimedAt: sql`statement_timestamp()`,
    set: sql`attempt = j.attempt + 1, fence = j.fence + 1, waiting_key = null`,
    where: amongFree(queue),
    returning: sql`j.id`,
    answer: {
      name: 'claimed',
      select: sql`
    select id from claimed`,
    },
  });
}
