import { type Column, getTableColumns } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { JobColumns, JobsTable } from './queue-jobs.ts';

/** The JavaScript type of a column's values, which decides how they are sent and read. */
export type OwnValues = 'text' | 'number' | 'bigint' | 'boolean' | 'date' | 'json' | 'custom';

/** One of the app's own columns: see `createQueueTables({ columns })`. */
export interface OwnColumn {
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

/** The keys of the library's own columns; making the table for them would bring its definition everywhere. */
const JOB_KEYS: Readonly<Record<keyof JobColumns, 1>> = {
  id: 1,
  queue: 1,
  kind: 1,
  payload: 1,
  priority: 1,
  runAt: 1,
  attempt: 1,
  maxAttempts: 1,
  fence: 1,
  workerId: 1,
  claimedAt: 1,
  batchId: 1,
  blockers: 1,
  cost: 1,
  uniqueKey: 1,
  waitingKey: 1,
  groupKey: 1,
  errors: 1,
  metadata: 1,
  cancelReason: 1,
  progress: 1,
  createdAt: 1,
};

const found = new WeakMap<PgTable, readonly OwnColumn[]>();

/** A jobs table's own columns, in order; compares keys, as another copy of this module may have made it. */
export function ownColumnsOf(queueJobs: PgTable): readonly OwnColumn[] {
  const known = found.get(queueJobs);
  if (known !== undefined) return known;
  const own = Object.entries(getTableColumns(queueJobs)).filter(([key]) => !Object.hasOwn(JOB_KEYS, key));
  const columns = own.map(([key, column]) => toOwnColumn(key, column));
  found.set(queueJobs, columns);
  return columns;
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

/** @throws TypeError always */
export function refuse(key: string, why: string): never {
  throw new TypeError(`createQueueTables: columns.${key}: ${why}`);
}
