import { checkOwnColumns, checkOwnKeys, type TakenKey } from './check-own-columns.ts';
import type { ColumnBuilders, NoColumns } from './column-types.ts';
import { checkDrizzleVersion } from './drizzle-version.ts';
import { defineJobsTable, type JobsTable } from './queue-jobs.ts';
import { definePausesTable, type PausesTable } from './queue-pauses.ts';
import { defineResultsTable, type ResultsTable } from './queue-results.ts';
import { defineWorkersTable, type WorkersTable } from './queue-workers.ts';
import { placeOf, type TablePlace } from './table-place.ts';

/** The four tables of a queue, whatever their names. */
export interface QueueTables<
  TPrefix extends string = string,
  TSchema extends string | undefined = string | undefined,
  TColumns extends ColumnBuilders = NoColumns,
> {
  queueJobs: JobsTable<`${TPrefix}jobs`, TSchema, TColumns>;
  queueResults: ResultsTable<`${TPrefix}results`, TSchema, TColumns>;
  queueWorkers: WorkersTable<`${TPrefix}workers`, TSchema>;
  queuePauses: PausesTable<`${TPrefix}pauses`, TSchema>;
}

/** Where {@link createQueueTables} puts the tables, and which columns of the app's it adds. */
export interface QueueTablesOptions<
  TPrefix extends string,
  TSchema extends string | undefined,
  TColumns extends ColumnBuilders = NoColumns,
> extends TablePlace<TPrefix, TSchema> {
  /**
   * The app's own columns, such as `{ tenantId: text('tenant_id').notNull() }`, in both jobs and results.
   * They are options of an enqueue (required as in an insert), filters of `list`, and part of every record
   * and of the handler's `job`. Each needs an explicit name in the database. Text, numbers, booleans, dates,
   * uuid, enums, json and `customType` work; arrays and generated columns do not.
   * @default none
   */
  columns?: TColumns & { readonly [K in TakenKey]?: never };
}

/**
 * The queue's tables under other names, for a second queue in the same database or a Postgres schema of their
 * own. Destructure them into top-level exports: drizzle-kit does not look inside objects.
 *
 * ```ts
 * export const { queueJobs, queueResults, queueWorkers, queuePauses } =
 *   createQueueTables({ prefix: 'mail_' });
 * export const queue = createQueue({ tables: { queueJobs, queueResults, queueWorkers, queuePauses } });
 * ```
 *
 * @throws TypeError when the prefix is not a plain lower-case name, or a column cannot be used
 * @throws Error when drizzle-orm is older than 0.34
 */
export function createQueueTables<
  const TPrefix extends string = 'queue_',
  const TSchema extends string | undefined = undefined,
  TColumns extends ColumnBuilders = NoColumns,
>(options: QueueTablesOptions<TPrefix, TSchema, TColumns> = {}): QueueTables<TPrefix, TSchema, TColumns> {
  checkDrizzleVersion();
  const { prefix, table } = placeOf('createQueueTables', options);
  const columns: NoColumns = options?.columns ?? {};
  checkOwnKeys(columns);
  const queueJobs = defineJobsTable<`${TPrefix}jobs`, TSchema, TColumns>(table, `${prefix}jobs`, columns);
  checkOwnColumns(queueJobs);
  return {
    queueJobs,
    queueResults: defineResultsTable<`${TPrefix}results`, TSchema, TColumns>(
      table,
      `${prefix}results`,
      columns,
    ),
    queueWorkers: defineWorkersTable<`${TPrefix}workers`, TSchema>(table, `${prefix}workers`),
    queuePauses: definePausesTable<`${TPrefix}pauses`, TSchema>(table, `${prefix}pauses`),
  };
}
