import { getTableColumns, is } from 'drizzle-orm';
import { getTableConfig, PgColumnBuilder, type PgTable, pgTable } from 'drizzle-orm/pg-core';
import type { NoColumns } from './column-types.ts';
import { ownColumnsOf, refuse } from './own-columns.ts';
import { defineJobsTable, type JobColumns } from './queue-jobs.ts';
import { defineResultsTable, type ResultColumns } from './queue-results.ts';

/** Further names that options, filters, records and `job` use. */
const ALSO_TAKEN = [
  'delayMs',
  'job',
  'cursor',
  'limit',
  'payloadBytes',
  'begun',
  'beginTime',
  'place',
  'group',
  'unique',
  'debounce',
  'throttle',
  'replace',
  'awaited',
  'all',
  'ids',
  'searchLimit',
  'createdAfter',
  'createdBefore',
  'finishedAfter',
  'finishedBefore',
  'timeoutMs',
  'signal',
  'after',
  'onFailure',
  'last',
  'detached',
  'key',
  'worker',
  'before',
] as const;

/** Names that the end of a hold gives to columns beside all those of a job: see `endHolds`. */
const NAMES_BESIDE = ['ended_group', 'ended_run_at', 'member_of'] as const;

/** Keys that are not available for an own column. */
export type TakenKey = keyof JobColumns | keyof ResultColumns | (typeof ALSO_TAKEN)[number];

let library:
  | {
      readonly keys: ReadonlySet<string>;
      readonly names: ReadonlySet<string>;
    }
  | undefined;

function libraryColumns() {
  if (library === undefined) {
    const jobs = getTableColumns(defineJobsTable<string, undefined, NoColumns>(pgTable, 'queue_jobs', {}));
    const results = getTableColumns(
      defineResultsTable<string, undefined, NoColumns>(pgTable, 'queue_results', {}),
    );
    library = {
      keys: new Set([...Object.keys(jobs), ...Object.keys(results), ...ALSO_TAKEN]),
      names: new Set([
        ...[...Object.values(jobs), ...Object.values(results)].map(({ name }) => name),
        ...NAMES_BESIDE,
      ]),
    };
  }
  return library;
}

/** @throws TypeError when these are not columns, or the library itself uses one of the keys */
export function checkOwnKeys(columns: NoColumns): void {
  if (typeof columns !== 'object' || columns === null) {
    throw new TypeError(`createQueueTables: columns must be an object of columns, got ${typeof columns}`);
  }
  for (const [key, column] of Object.entries(columns)) {
    if (libraryColumns().keys.has(key)) refuse(key, 'the name is taken; choose another');
    if (!is(column, PgColumnBuilder)) refuse(key, "must be a column, such as text('name')");
  }
}

/** @throws TypeError when an own column of the jobs table cannot be used */
export function checkOwnColumns(queueJobs: PgTable): void {
  for (const { key, column } of ownColumnsOf(queueJobs)) {
    // Drizzle derives an omitted name from a setting of the database object, unknown to the statements.
    if (column.keyAsName) refuse(key, `give it a name in the database, such as ${column.name.toLowerCase()}`);
    if (column.name.includes('\0')) refuse(key, 'its name must not contain a NUL character');
    if (libraryColumns().names.has(column.name)) refuse(key, `the column name ${column.name} is taken`);
    if (column.isUnique || column.primary) {
      refuse(key, 'it cannot be unique: results may repeat it; use the option uniqueKey of an enqueue');
    }
  }
}

/** @throws TypeError when the results lack one of the jobs' own columns: finishing would lose its value */
export function checkSameOwnColumns(queueJobs: PgTable, queueResults: PgTable): void {
  const names = new Set(getTableConfig(queueResults).columns.map(({ name }) => name));
  for (const { key, column } of ownColumnsOf(queueJobs)) {
    if (!names.has(column.name)) {
      throw new TypeError(
        `createQueue: queueJobs has the column ${key}, but queueResults does not: ` +
          'take both from the same createQueueTables()',
      );
    }
  }
}
