import { is } from 'drizzle-orm';
import { PgSchema } from 'drizzle-orm/pg-core';
import { declareTableIn } from './declare-table.ts';
import { defineJobsTable, type JobsTable } from './queue-jobs.ts';
import { definePausesTable, type PausesTable } from './queue-pauses.ts';
import { defineResultsTable, type ResultsTable } from './queue-results.ts';
import { defineWorkersTable, type WorkersTable } from './queue-workers.ts';

/** The four tables of a queue, under whatever names. */
export interface QueueTables<
  TPrefix extends string = string,
  TSchema extends string | undefined = string | undefined,
> {
  queueJobs: JobsTable<`${TPrefix}jobs`, TSchema>;
  queueResults: ResultsTable<`${TPrefix}results`, TSchema>;
  queueWorkers: WorkersTable<`${TPrefix}workers`, TSchema>;
  queuePauses: PausesTable<`${TPrefix}pauses`, TSchema>;
}

/** Where {@link createQueueTables} puts the tables. */
export interface QueueTablesOptions<TPrefix extends string, TSchema extends string | undefined> {
  /**
   * What the tables' names begin with.
   * @default 'queue_'
   */
  prefix?: TPrefix;
  /**
   * The Postgres schema, as the user's own `pgSchema('…')` (export that too, or drizzle-kit will not create it).
   * @default the default schema, `public`
   */
  schema?: { readonly schemaName: TSchema } & Pick<PgSchema, 'table'>;
}

/**
 * The queue's tables under another name, for a second queue in the same database or for a Postgres schema of their own.
 * Destructure them into top-level exports: drizzle-kit does not look inside objects.
 *
 * ```ts
 * export const { queueJobs, queueResults, queueWorkers, queuePauses } = createQueueTables({ prefix: 'mail_' });
 * export const queue = createQueue({ tables: { queueJobs, queueResults, queueWorkers, queuePauses } });
 * ```
 *
 * @throws TypeError when the prefix is not a plain lower-case name: index names are made of it.
 */
export function createQueueTables<
  const TPrefix extends string = 'queue_',
  const TSchema extends string | undefined = undefined,
>(options: QueueTablesOptions<TPrefix, TSchema> = {}): QueueTables<TPrefix, TSchema> {
  // The default belongs to the type parameter's own default, which TypeScript cannot connect with the value.
  const prefix = options?.prefix ?? ('queue_' as TPrefix);
  // Only a text: an array of one, say, would pass the pattern as well.
  if (typeof prefix !== 'string' || !/^[a-z_][a-z0-9_]{0,39}$/.test(prefix)) {
    const got = typeof prefix === 'string' ? `'${prefix}'` : `a value of type ${typeof prefix}`;
    throw new TypeError(
      `createQueueTables: prefix must be 1–40 characters of a–z, 0–9 and _, not starting with a digit; got ${got}`,
    );
  }
  // A NUL would end the text of a statement in the middle of it.
  if (options?.schema !== undefined && !(is(options.schema, PgSchema) && isName(options.schema.schemaName))) {
    throw new TypeError('createQueueTables: schema must be what pgSchema() answers for a name without NUL');
  }
  const table = declareTableIn(options?.schema);
  return {
    queueJobs: defineJobsTable<`${TPrefix}jobs`, TSchema>(table, `${prefix}jobs`),
    queueResults: defineResultsTable<`${TPrefix}results`, TSchema>(table, `${prefix}results`),
    queueWorkers: defineWorkersTable<`${TPrefix}workers`, TSchema>(table, `${prefix}workers`),
    queuePauses: definePausesTable<`${TPrefix}pauses`, TSchema>(table, `${prefix}pauses`),
  };
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && !value.includes('\0');
}
