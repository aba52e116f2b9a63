import { is, SQL, sql } from 'drizzle-orm';
import { checkDate, checkStorable } from '../job/limits.ts';
import type { NewJob } from '../job/new-job.ts';
import { toStoredJson, UnstorableValueError } from '../job/stored-json.ts';
import type { OwnColumn } from '../schema/own-columns.ts';
import { dateOf, epochMs } from './epoch-ms.ts';
import type { RawRow } from './executor.ts';

/*
 * Values of the app's own columns travel as texts, because drivers and drizzle-orm majors decode raw rows
 * differently. Without such columns no statement changes.
 */

/** `, "tenant_id"`, or with an alias `, f."tenant_id"`, for each column of an `INSERT … SELECT`. */
export function ownNames(own: readonly OwnColumn[], alias = ''): SQL {
  return sql.raw(own.map(({ name }) => `, ${alias}${name}`).join(''));
}

/** `, j."tenant_id"::text as own_0` for each column, as {@link ownRecord} reads it. */
export function selectOwn(own: readonly OwnColumn[], alias: 'j' | 'r'): SQL {
  return sql.join(
    own.map(({ name, values, castTo }, index) => {
      const column = `${alias}.${name}`;
      // A cast adds the length of the network to the address of a host.
      const text = castTo === 'inet' ? `abbrev(${column})` : `${column}::text`;
      const value = values === 'date' ? epochMs(column) : sql.raw(text);
      return sql`, ${value} as ${sql.raw(`own_${index}`)}`;
    }),
  );
}

/** The own columns of a row, as Drizzle would return them. */
export function ownRecord(own: readonly OwnColumn[], row: RawRow): Record<string, unknown> {
  return Object.fromEntries(own.map((column, index) => [column.key, decoded(column, row[`own_${index}`])]));
}

function decoded({ values, column }: OwnColumn, raw: unknown): unknown {
  if (raw === null || raw === undefined) return null;
  switch (values) {
    case 'date':
      return dateOf(raw);
    case 'number':
      return Number(raw);
    case 'bigint':
      return BigInt(String(raw));
    case 'boolean':
      return raw === 'true';
    case 'json':
      return JSON.parse(String(raw));
    case 'text':
      return String(raw);
    case 'custom':
      return column.mapFromDriverValue(raw);
  }
}

/** A text of {@link textOf} as a value of the column. */
export function ownValue({ castTo }: OwnColumn, text: SQL): SQL {
  return sql`${text}${sql.raw(castTo === 'text' ? '' : `::${castTo}`)}`;
}

/** The database's default for an omitted column, as an expression. */
export function ownDefault(own: OwnColumn): SQL {
  const value: unknown = own.column.default;
  if (is(value, SQL)) return sql`(${value})`;
  if (value === undefined) return sql`null`;
  return ownValue(own, sql`${textOf(own, value, 'the default of')}::text`);
}

/** Adds the own columns' values. @throws TypeError | RangeError when one is missing or does not fit */
export function withOwn(own: readonly OwnColumn[], job: NewJob, options: object = {}): NewJob {
  if (own.length === 0) return job;
  const what = `enqueue('${job.kind}')`;
  return {
    ...job,
    own: own.map((column) => {
      const value = valueOrDefault(column, Reflect.get(options, column.key));
      if (value !== undefined) return textOf(column, value, what);
      checkNotNeeded(column, what);
      return undefined;
    }),
  };
}

/** A filter's conditions on the own columns. @throws TypeError | RangeError when a value does not fit */
export function ownWanted(own: readonly OwnColumn[], filter: object, what = 'list'): OwnWanted[] {
  return own.flatMap((column) => {
    const value: unknown = Reflect.get(filter, column.key);
    return value === undefined ? [] : [{ column, text: value === null ? null : textOf(column, value, what) }];
  });
}

/** The value that an own column must have, as a text. */
export interface OwnWanted {
  readonly column: OwnColumn;
  readonly text: string | null;
}

/** @throws TypeError when the database requires a value for the column */
export function checkNotNeeded({ key, name, column }: OwnColumn, what: string): void {
  if (!column.notNull || column.default !== undefined) return;
  throw new TypeError(`${what}: ${key} must be given: its column ${name} is NOT NULL and has no default`);
}

/** As in Drizzle's insert, a function of the app may supply an omitted value. */
export function valueOrDefault({ column }: OwnColumn, value: unknown): unknown {
  if (value !== undefined) return value;
  if (column.defaultFn !== undefined) return column.defaultFn();
  return column.default === undefined ? column.onUpdateFn?.() : undefined;
}

/** @throws TypeError | RangeError when the value does not fit the column */
export function textOf(own: OwnColumn, value: unknown, what: string): string | null {
  const { values, column } = own;
  const named = `${what}: ${own.key}`;
  if (value === null) {
    if (column.notNull) throw new TypeError(`${named} must not be null: its column is NOT NULL`);
    return null;
  }
  switch (values) {
    case 'date':
      return checkDate(named, toDate(value)).toISOString();
    case 'json':
      return jsonOf(value, named);
    case 'custom':
      return checkStorable(named, String(column.mapToDriverValue(value)));
    case 'text':
      if (typeof value !== 'string') throw new TypeError(`${named} must be a string, got ${typeof value}`);
      return checkStorable(named, value);
    case 'number':
    case 'bigint':
    case 'boolean':
      if (typeof value === values) return String(value);
      throw new TypeError(`${named} must be a ${values}, got ${typeof value}`);
  }
}

/** The check that follows refuses anything but a Date. */
function toDate(value: unknown): Date {
  return value instanceof Date ? value : new Date(Number.NaN);
}

function jsonOf(value: unknown, what: string): string {
  try {
    return toStoredJson(value);
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    const { message, path } = error.issue;
    throw new TypeError(`${what}${path === '' ? '' : ` at ${path}`}: ${message}`);
  }
}
