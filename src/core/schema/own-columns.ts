import { type Column, getTableColumns, is } from 'drizzle-orm';
import { getTableConfig, PgColumnBuilder, type PgTable, pgTable } from 'drizzle-orm/pg-core';
import type { NoColumns } from './column-types.ts';
import { defineJobsTable, type JobColumns, type JobsTable } from './queue-jobs.ts';
import { defineResultsTable, type ResultColumns } from './queue-results.ts';

/** The JavaScript type of a column's values, which decides how they are sent and read. */
export type OwnValues = 'text' | 'number' | 'bigint' | 'boolean' | 'date' | 'json' | 'custom';

/** One of the app's own columns: see `createQueueTables({ columns })`. */
export interface OwnColumn {
  /** Its key in the app's code. */
  readonly key: string;
  /** Its name in the database, quoted. */
  readonly name: string;
  readonly values: OwnValues;
  /** The type that a text is cast to. */
  readonly castTo: string;
  readonly column: Column;
}

/** The app's own columns as an enqueue takes and a record returns them; `unknown` without such columns. */
export interface OwnColumns {
  readonly insert: unknown;
  readonly select: unknown;
}

/** The app's own columns of a jobs table. */
export interface OwnColumnsOf<TJobs extends JobsTable> {
  readonly insert: Own<TJobs['$inferInsert']>;
  readonly select: Own<TJobs['$inferSelect']>;
}

/** The columns of a row that are not the library's. */
type Own<TRow> = keyof TRow extends keyof JobColumns
  ? unknown
  : { readonly [K in keyof TRow as Exclude<K, keyof JobColumns>]: TRow[K] };

/** Further names that options, filters, records and `job` use. */
const ALSO_TAKEN = [
  'delayMs',
  'job',
  'cursor',
  'limit',
  'payloadBytes',
  'progress',
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
const NAMES_BESIDE = ['ended_group', 'ended_run_at'] as const;

/** Keys that are not available for an own column. */
export type TakenKey = keyof JobColumns | keyof ResultColumns | (typeof ALSO_TAKEN)[number];

let library:
  | {
      readonly jobKeys: ReadonlySet<string>;
      readonly keys: ReadonlySet<string>;
      readonly names: ReadonlySet<string>;
    }
  | undefined;

/** The keys and names of the library's own columns. */
function libraryColumns() {
  if (library === undefined) {
    const jobs = getTableColumns(defineJobsTable<string, undefined, NoColumns>(pgTable, 'queue_jobs', {}));
    const results = getTableColumns(
      defineResultsTable<string, undefined, NoColumns>(pgTable, 'queue_results', {}),
    );
    library = {
      jobKeys: new Set(Object.keys(jobs)),
      keys: new Set([...Object.keys(jobs), ...Object.keys(results), ...ALSO_TAKEN]),
      names: new Set([
        ...[...Object.values(jobs), ...Object.values(results)].map(({ name }) => name),
        ...NAMES_BESIDE,
      ]),
    };
  }
  return library;
}

const found = new WeakMap<PgTable, readonly OwnColumn[]>();

/** A jobs table's own columns, in order; compares keys, as another copy of this module may have made it. */
export function ownColumnsOf(queueJobs: PgTable): readonly OwnColumn[] {
  const known = found.get(queueJobs);
  if (known !== undefined) return known;
  const { jobKeys } = libraryColumns();
  const own = Object.entries(getTableColumns(queueJobs)).filter(([key]) => !jobKeys.has(key));
  const columns = own.map(([key, column]) => toOwnColumn(key, column));
  found.set(queueJobs, columns);
  return columns;
}

/** @throws TypeError when these are not columns, or the library itself uses one of the keys */
export function checkOwnKeys(columns: NoColumns): void {
  if (typeof columns !== 'object' || columns === null) {
    throw new TypeError(
      `createQueueTables: columns must be an object of columns, got a value of type ${typeof columns}`,
    );
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

function toOwnColumn(key: string, column: Column): OwnColumn {
  const name = `"${column.name.replaceAll('"', '""')}"`;
  const values = valuesOf(column);
  if (values === undefined || column.generated !== undefined || column.generatedIdentity !== undefined) {
    return refuse(
      key,
      `${column.getSQLType()} cannot be used: only text, numbers, booleans, dates, uuid, enums, json and ` +
        'customType',
    );
  }
  return { key, name, values, castTo: castOf(column), column };
}

/** `undefined` for values that cannot be sent as text. `date` of drizzle-orm 0.45 is `object date` in 1.0. */
function valuesOf(column: Column): OwnValues | undefined {
  const type = column.getSQLType();
  if ('dimensions' in column && column.dimensions !== 0) return undefined;
  if (/serial/.test(type)) return undefined;
  if (type === 'json' || type === 'jsonb') return 'json';
  const { dataType }: { readonly dataType: string } = column;
  if (dataType === 'date' || dataType === 'object date') return 'date';
  const [word] = dataType.split(' ');
  switch (word) {
    case 'string':
      return 'text';
    case 'number':
    case 'bigint':
    case 'boolean':
    case 'custom':
      return word;
    default:
      return undefined;
  }
}

function castOf(column: Column): string {
  const type = column.getSQLType();
  // A cast to varchar(3) would truncate the text silently; an assignment refuses it.
  if (/^(var|bp)?char(acter)?\b/i.test(type)) return 'text';
  const { enum: definition } = column as { enum?: { readonly enumName: string; readonly schema?: string } };
  if (definition === undefined) return type;
  return [definition.schema, definition.enumName]
    .filter((part) => part !== undefined)
    .map((part) => `"${part.replaceAll('"', '""')}"`)
    .join('.');
}

function refuse(key: string, why: string): never {
  throw new TypeError(`createQueueTables: columns.${key}: ${why}`);
}
