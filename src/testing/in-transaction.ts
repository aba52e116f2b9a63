import { type Database, NO_DATABASE } from '../sql/executor.ts';
import type { TransactionOf } from '../worker/attempt/handler.ts';

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
 * Under concurrency: nobody else sees what the transaction writes, and it takes no job that another has
 * claimed.
 *
 * @throws what the function throws
 */
export async function inTransaction<TDb extends Database, T>(
  db: TDb,
  run: (tx: TransactionOf<TDb>) => Promise<T> | T,
): Promise<T> {
  if (typeof db?.transaction !== 'function') throw new TypeError(`inTransaction: ${NO_DATABASE}`);
  if (typeof run !== 'function') throw new TypeError('inTransaction takes a function after the database');
  const rollback = new Error('rolled back at the end of inTransaction');
  let returned: { readonly value: T } | undefined;
  try {
    await db.transaction(async (tx) => {
      // Drizzle hands over its own transaction type.
      returned = { value: await run(tx as TransactionOf<TDb>) };
      throw rollback;
    });
  } catch (error) {
    if (error !== rollback) throw error;
  }
  if (returned === undefined) throw new Error('inTransaction: the driver did not run the transaction');
  return returned.value;
}
