import type { Database, Queue, TransactionOf } from '../../index.ts';
import { checkOptions, namesOf, sqlStateOf, transact } from '../../internal.ts';
import { NO_DATABASE } from '../../testing-face.ts';
import { checkQueue } from './check-queue.ts';
import { noteDeletions } from './find-written-jobs.ts';
import { refuseSelfWaits } from './one-connection.ts';
import { useOwnTables } from './own-tables.ts';

/** The options of {@link inTransaction}. */
export interface InTransactionOptions {
  /**
   * A queue for whose tables this transaction has empty copies of its own. Then test files that run at the
   * same time neither wait for each other's unique keys nor deadlock. Foreign keys of the app's tables still
   * point to the other ones. Not for tables in a `pgSchema`.
   * @default the tables that all share
   */
  queue?: Pick<Queue, 'tables' | 'limits' | 'schedules' | 'keys' | 'metrics' | 'workflows'> | undefined;
}

const OPTIONS = namesOf<InTransactionOptions>({ queue: true });

const DEADLOCK = '40P01';

/**
 * Calls a function with a transaction that is always rolled back, and returns what it returns: a test leaves
 * nothing behind, also when it fails.
 *
 * ```ts
 * test('an order is followed by a receipt', () =>
 *   inTransaction(db, async (tx) => {
 *     await placeOrder(tx, cart);
 *     await expect(tx).toHaveEnqueued(sendReceipt);
 *   }));
 * ```
 *
 * Under concurrency: other transactions do not see what this one writes, and it takes no job that another has
 * claimed. Two that enqueue the same unique key wait for each other; with `queue` they do not.
 *
 * @throws what the function throws; of a deadlock an Error that says what to do
 */
export async function inTransaction<TDb extends Database, T>(
  db: TDb,
  run: (tx: TransactionOf<TDb>) => Promise<T> | T,
  options: InTransactionOptions = {},
): Promise<T> {
  if (typeof db?.transaction !== 'function') throw new TypeError(`inTransaction: ${NO_DATABASE}`);
  if (typeof run !== 'function') throw new TypeError('inTransaction takes a function after the database');
  const { queue } = checkOptions('inTransaction: options', options, OPTIONS);
  // Its tables are all that is used.
  if (queue !== undefined) checkQueue('inTransaction', queue as Queue);
  const client: unknown = Reflect.get(db, '$client');
  if (typeof client === 'object' && client !== null) refuseSelfWaits(client);
  const rollback = new Error('rolled back at the end of inTransaction');
  let returned: { readonly value: T } | undefined;
  try {
    await transact(db, async (tx) => {
      await noteDeletions(tx);
      if (queue !== undefined) await useOwnTables(tx, queue);
      // Drizzle hands over its own transaction type.
      returned = { value: await run(tx as TransactionOf<TDb>) };
      throw rollback;
    });
  } catch (error) {
    if (error !== rollback) throw sqlStateOf(error) === DEADLOCK ? deadlocked(error) : error;
  }
  if (returned === undefined) throw new Error('inTransaction: the driver did not run the transaction');
  return returned.value;
}

function deadlocked(cause: unknown): Error {
  return new Error(
    'inTransaction: a deadlock. Tests that run at the same time enqueue the same unique keys in one ' +
      'database: give each transaction its own tables, as inTransaction(db, run, { queue }), or each ' +
      'file a database',
    { cause },
  );
}
