import { is, Placeholder, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { shown } from './shown.ts';

/**
 * How strongly a row is locked, strongest first:
 * - `update`: against every other lock. `DELETE`, and `UPDATE` of key columns, take it.
 * - `no key update`: the same, but other transactions may insert rows that refer to this one by a foreign
 *   key.
 * - `share`: against writers. Several transactions may hold it on one row.
 * - `key share`: against deletes and key changes only. Several may hold it; foreign keys take it.
 */
export type LockStrength = 'update' | 'no key update' | 'share' | 'key share';

/** The strengths that only one transaction can hold: two takers never get the same row. */
export type ExclusiveStrength = Extract<LockStrength, 'update' | 'no key update'>;

/** For a row that another transaction has locked: skip it, or with `nowait` fail at once (SQLSTATE 55P03). */
export type LockWait = 'skip locked' | 'nowait';

/** Which rows to take, and in what order. */
export interface WhichRows {
  /** A condition on the table's columns; subselects are allowed. @default all rows */
  where?: SQL | undefined;
  /**
   * Which rows come first: columns, `asc(…)`, `desc(…)`, or any SQL; otherwise those that Postgres finds
   * first. An index on the columns of `where` followed by these keeps a deep queue as fast as a shallow one.
   * @default no order
   */
  orderBy?: SQLWrapper | readonly SQLWrapper[] | undefined;
  /**
   * The most rows to take: a whole number above 0, or `sql.placeholder(…)` in a prepared query, whose value
   * must not be null. No more are locked, deleted or updated. @default 1
   */
  limit?: number | Placeholder | undefined;
  /** What to do about rows that another transaction has locked. @default 'skip locked' */
  wait?: LockWait | undefined;
}

const EXCLUSIVE_LOCKS: Readonly<Record<ExclusiveStrength, SQL>> = {
  update: sql` for update`,
  'no key update': sql` for no key update`,
};
const LOCKS: Readonly<Record<LockStrength, SQL>> = {
  ...EXCLUSIVE_LOCKS,
  share: sql` for share`,
  'key share': sql` for key share`,
};
const WAITS: Readonly<Record<LockWait, SQL>> = { 'skip locked': sql` skip locked`, nowait: sql` nowait` };

/** ` for update` and so on. @throws TypeError naming the strength that does not exist */
export function lockOf(what: string, strength: LockStrength): SQL {
  return lookUp(`${what}: strength`, LOCKS, strength);
}

/** The same for rows that are then written: a lock that several may hold gives one row to all of them. */
export function exclusiveLockOf(what: string, strength: ExclusiveStrength): SQL {
  return lookUp(`${what}: strength`, EXCLUSIVE_LOCKS, strength);
}

/**
 * Everything after `from`: ` where … order by … limit … for … skip locked`.
 *
 * @throws RangeError | TypeError naming the option that is wrong
 */
export function lockingClauses(what: string, which: WhichRows, lock: SQL): SQL {
  const { where, orderBy = [], limit = 1, wait = 'skip locked' } = which;
  const order = isList(orderBy) ? orderBy : [orderBy];
  return sql.join([
    where === undefined ? sql`` : sql` where ${where}`,
    order.length === 0 ? sql`` : sql` order by ${sql.join([...order], sql`, `)}`,
    sql` limit ${checkLimit(what, limit)}`,
    lock,
    lookUp(`${what}: wait`, WAITS, wait),
  ]);
}

function isList(orderBy: SQLWrapper | readonly SQLWrapper[]): orderBy is readonly SQLWrapper[] {
  return Array.isArray(orderBy);
}

/** `limit null` would mean all rows. PostgreSQL refuses a negative one. */
function checkLimit(what: string, limit: number | Placeholder): SQL {
  if (is(limit, Placeholder)) return sql`coalesce(${limit}::int8, -1)`;
  if (typeof limit === 'number' && Number.isSafeInteger(limit) && limit > 0) return sql`${limit}`;
  throw new RangeError(`${what}: limit must be a whole number above 0; got ${shown(limit)}`);
}

/** Looked up and not spliced in: a name from a caller without types must not become SQL. */
function lookUp<K extends string>(what: string, known: Readonly<Record<K, SQL>>, name: K): SQL {
  // Only a text: another value may throw when it becomes one, or become a different one next time.
  if (typeof name === 'string' && Object.hasOwn(known, name)) return known[name];
  throw new TypeError(`${what} must be one of ${Object.keys(known).join(', ')}; got ${shown(name)}`);
}
