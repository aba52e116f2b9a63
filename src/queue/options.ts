import { is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import { checkBoolean, checkInteger, checkObject, LARGEST_MAX_PAYLOAD_BYTES } from '../job/limits.ts';
import { shown } from '../job/shown.ts';
import { type QueueTables, queueJobs, queuePauses, queueResults, queueWorkers } from '../schema/index.ts';

/** Settings of {@link createQueue}. */
export interface CreateQueueOptions<TTables extends QueueTables = QueueTables> {
  /** The queue's tables, from `createQueueTables`. @default the tables of `drizzle-queue/schema` */
  tables?: TTables | undefined;
  /**
   * Whether an enqueue of jobs that are due tells the workers at once (`NOTIFY`), in the caller's transaction and at most about
   * twenty times a second for each queue; and so do `cancel` of a running job, `pause` and `resume`. Workers poll in any case, so
   * nothing is lost without: jobs start a little later, and a worker that listens all the same learns of a cancel or a pause up to
   * six seconds later. Turn it off where Postgres has
   * no `NOTIFY` (some compatible databases), where no worker listens, or where enqueues run in transactions that are to be
   * prepared (`PREPARE TRANSACTION` refuses one that has notified).
   * @default true
   */
  wakeUps?: boolean | undefined;
  /**
   * How large a payload may be, in bytes of its JSON text, 1 to 104,857,600; and the metadata beside it. A larger one is an
   * `InvalidPayloadError` of `enqueue` and `enqueueMany`; the rows of `enqueueFrom` are not measured. Each job is read and written
   * several times in its life, and a worker holds many at once: what is large is better stored elsewhere, and referred to.
   * @default 1_048_576 (1 MB)
   */
  maxPayloadBytes?: number | undefined;
}

/**
 * For callers without TypeScript, and for a `createQueueTables` whose tables were not all handed over.
 *
 * @throws RangeError | TypeError naming the option that is wrong
 */
export function checkQueueOptions(options: CreateQueueOptions): void {
  checkObject('createQueue: its options', options);
  const { tables, wakeUps, maxPayloadBytes } = options;
  if (wakeUps !== undefined) checkBoolean('createQueue: wakeUps', wakeUps);
  if (maxPayloadBytes !== undefined) {
    checkInteger('createQueue: maxPayloadBytes', maxPayloadBytes, 1, LARGEST_MAX_PAYLOAD_BYTES);
  }
  if (tables === undefined) return;
  checkObject('createQueue: tables', tables);
  for (const name of Object.keys({
    queueJobs,
    queueResults,
    queueWorkers,
    queuePauses,
  } satisfies QueueTables)) {
    const table: unknown = Reflect.get(tables, name);
    if (!is(table, PgTable)) {
      throw new TypeError(
        `createQueue: tables.${name} must be a table of createQueueTables(), got ${shown(table)}`,
      );
    }
  }
}
