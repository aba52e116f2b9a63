import type { OwnColumns } from '../../core/schema/own-columns.ts';
import type { Database } from '../../core/sql/executor.ts';
import type { EveryKind } from '../../core/worker/every-kind.ts';
import { Worker } from '../../core/worker/worker.ts';
import { additions } from './worker-additions.ts';
import type { WorkerOptions } from './worker-options.ts';

/**
 * A worker for the handlers' jobs. It uses the given database, and one connection beside its pool to listen
 * for notifications and to show that it lives, where the driver can.
 *
 * ```ts
 * const worker = createWorker(db, { queue, handlers: [handle(sendReceipt, async ({ payload }) => { … })] });
 * await worker.run();
 * ```
 *
 * @throws UnknownKindError | RangeError | TypeError when a setting is wrong, or one of its `jobs` has no
 * handler
 * @throws TypeError when `db` is a transaction, or a single client in place of a connection pool
 */
export function createWorker<
  TDb extends Database,
  TOwn extends OwnColumns,
  THandled extends string = string,
  TKind extends string = string,
>(db: TDb, options: WorkerOptions<NoInfer<TDb>, TOwn, THandled, TKind> & EveryKind<THandled, TKind>): Worker {
  // The handlers were checked against the database and the tables; from here on their types do not matter.
  return new Worker(db, options as unknown as WorkerOptions<Database>, { additions });
}
