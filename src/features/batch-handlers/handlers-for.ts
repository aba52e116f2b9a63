import type { JobDefinition } from '../../core/job/definition.ts';
import type { Queue } from '../../core/queue/queue.ts';
import type { Database } from '../../core/sql/executor.ts';
import {
  type BatchHandler,
  type DbOrTx,
  type HandlerContext,
  type HandlerResult,
  handle,
  type JobHandler,
  type OwnValuesOf,
} from '../../core/worker/run/handler.ts';
import {
  type BatchContext,
  type BatchJob,
  type BatchOptions,
  type BatchResult,
  handleBatch,
} from './handle-batch.ts';

/** `handle` and `handleBatch` for one database, from {@link handlersFor}. */
export interface HandlersFor<TDb extends Database, TQueue extends Queue = Queue> {
  /** As `handle`; `db` of the context is the app's database, or in a test its transaction. */
  handle<TJob extends JobDefinition>(
    job: TJob,
    run: (
      context: HandlerContext<TJob, DbOrTx<TDb>, TQueue>,
    ) => HandlerResult<TJob> | Promise<HandlerResult<TJob>>,
  ): JobHandler<DbOrTx<TDb>, OwnValuesOf<TQueue>, TJob['kind']>;
  /** As `handleBatch`; `db` of the context is the app's database, or in a test its transaction. */
  handleBatch<TJob extends JobDefinition>(
    job: TJob,
    options: BatchOptions,
    run: (
      jobs: readonly BatchJob<TJob, TQueue>[],
      context: BatchContext<TJob, DbOrTx<TDb>>,
    ) => BatchResult<TJob> | Promise<BatchResult<TJob>>,
  ): BatchHandler<DbOrTx<TDb>, OwnValuesOf<TQueue>, TJob['kind']>;
}

/**
 * `handle` and `handleBatch` whose contexts have the app's own type of `db`. Handlers that use it run in
 * workers, in `runNext`, and in the transaction of a test alike. Only the type is used, so a file of handlers
 * need not import the database itself.
 *
 * ```ts
 * import type { db } from './db';
 *
 * const { handle } = handlersFor<typeof db>();
 * export const handlers = [
 *   handle(sendReceipt, async ({ db, payload }) => {
 *     const [order] = await db.select().from(orders).where(eq(orders.id, payload.orderId));
 *   }),
 * ];
 * ```
 *
 * For the app's own columns, name the queue, too: `handlersFor<typeof db, typeof queue>()`.
 */
export function handlersFor<TDb extends Database, TQueue extends Queue = Queue>(): HandlersFor<TDb, TQueue> {
  // Their context has the type of db that is named here; at run time it is the worker's database anyway.
  return { handle, handleBatch } as unknown as HandlersFor<TDb, TQueue>;
}
