import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../../index.ts';
import { checkText, type RawRow, rowsOf } from '../../../internal.ts';
import type { ReadJob } from '../foreign-job.ts';
import type { ForeignCount, Place } from '../source.ts';

/** Rows of another system's tables. Errors of the driver pass unchanged: the tables are not ours. */
export async function foreignRows(db: Executor, query: SQL): Promise<RawRow[]> {
  const rows = rowsOf(await db.execute(query));
  if (rows === undefined) throw new TypeError('importJobs: the database returned no rows');
  return rows;
}

/** What a statement of the columns `name`, `waiting` and `active` has counted. */
export async function foreignCounts(db: Executor, query: SQL): Promise<readonly ForeignCount[]> {
  const rows = await foreignRows(db, query);
  return rows.map(({ name, waiting, active }) => ({
    name: String(name),
    waiting: Number(waiting),
    active: Number(active),
  }));
}

/** The column `id` of a statement that lists places. */
export async function listedIds(db: Executor, query: SQL): Promise<Place[]> {
  return (await foreignRows(db, query)).map(({ id }) => String(id));
}

/** Jobs in the order of these places. */
export function inOrder(
  jobs: readonly ReadJob[],
  places: readonly Place[],
  placeOf = ({ id }: ReadJob): Place => id,
): ReadJob[] {
  const at = new Map(places.map((place, index) => [place, index]));
  const indexOf = (job: ReadJob): number => at.get(placeOf(job)) ?? 0;
  return [...jobs].sort((a, b) => indexOf(a) - indexOf(b));
}

/** What makes a statement of {@link TableSource.read} lock its jobs. */
export function locking(lock: boolean): SQL {
  return lock ? sql` for update of j skip locked` : sql``;
}

/** One parameter for any number of texts. */
export function textArray(values: readonly string[]): SQL {
  return arrayOf(values, sql.raw('text'));
}

/**
 * The same as values of a type. Each value is cast once: a cast of the whole array may be repeated for each
 * row.
 */
export function arrayOf(values: readonly string[], type: SQL): SQL {
  const json = JSON.stringify(values);
  return sql`array(select e::${type} from jsonb_array_elements_text(${json}::text::jsonb) as e)`;
}

/** For an SQL statement, quoted. */
export function quoted({ schema, table }: ForeignTable): SQL {
  return sql`${sql.identifier(schema)}.${sql.identifier(table)}`;
}

export function checkSchema(caller: string, schema: string): string {
  return checkText(`${caller}: schema`, schema, 63);
}

/**
 * What `to_json` makes of a row: a column that an older version lacks is `undefined`. Not `to_jsonb`, which
 * is an error for all rows where one has a column of the type `json` with a NUL character in it.
 */
export function rowOf(value: unknown): Readonly<Record<string, unknown>> {
  // Of our own statements, which return an object as text.
  return JSON.parse(String(value)) as Record<string, unknown>;
}

/** A payload's column that was cast to text: its JSON as it stands there. */
export function jsonOf(value: unknown): string {
  return value === null || value === undefined ? 'null' : String(value);
}

export function textOrNothing(value: unknown): string | undefined {
  return value === null || value === undefined || value === '' ? undefined : String(value);
}

/** A time as `to_json` writes it; an invalid `Date` for an infinite one, which the enqueue refuses. */
export function timeOf(value: unknown): Date {
  return new Date(String(value));
}

/** A table of another system. */
export interface ForeignTable {
  readonly schema: string;
  readonly table: string;
}

/**
 * Row-level security hides rows without an error, so an import would find nothing and say that all is done.
 *
 * @throws Error when there is no such table, or its rows are hidden from this role
 */
export async function checkTable(
  db: Executor,
  { schema, table }: ForeignTable,
  title: string,
): Promise<void> {
  const name = sql`to_regclass(format('%I.%I', ${schema}::text, ${table}::text))`;
  const [row] = await foreignRows(
    db,
    sql`
      select t.name is not null as found, coalesce(row_security_active(t.name), false) as hidden,
        current_user::text as role
      from (select ${name} as name) as t`,
  );
  if (row?.found !== true) throw new Error(`importJobs: ${title} has no table ${schema}.${table} here`);
  if (row.hidden !== true) return;
  throw new Error(
    `importJobs: row-level security hides ${schema}.${table} from the role ${String(row.role)}: connect as ` +
      'the role that owns the table',
  );
}
