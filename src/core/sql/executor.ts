import { getTableName, type SQL, type SQLWrapper } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { MissingMigrationError, QueueError } from '../../errors.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { causesOf } from './causes-of.ts';
import { groupsInAny, membersIn } from './statement-context.ts';

/** What the library's own statements need. */
export interface Runner {
  execute(query: SQLWrapper): PromiseLike<unknown>;
}

/**
 * A Drizzle database *or* transaction on Postgres, of any driver, on drizzle-orm 0.x and 1.0. Structural,
 * because the two majors name their classes differently; only Postgres databases have `selectDistinctOn`. It
 * executes SQL from either copy of Drizzle: two copies have two classes `SQL`, which TypeScript tells apart
 * by private properties, and package managers install two as soon as their peers differ.
 */
export interface Executor {
  execute(query: string | { getSQL(): unknown }): PromiseLike<unknown>;
  selectDistinctOn(...args: never[]): unknown;
}

/** A Drizzle transaction, as `db.transaction` passes it to its function. A plain `db` does not compile. */
export interface Transaction extends Executor {
  rollback(): never;
  transaction<T>(run: (tx: Transaction) => Promise<T>): Promise<T>;
}

/** A Drizzle database: it can begin transactions. */
export interface Database extends Executor {
  transaction<T>(
    run: (tx: Transaction) => Promise<T>,
    settings?: { isolationLevel: 'repeatable read' },
  ): Promise<T>;
}

/** What a transaction begins with, as that all its statements see one snapshot; a savepoint ignores it. */
export type TransactionSettings = Parameters<Database['transaction']>[1];

/** One row of a raw query. Drivers decode some types differently, so each query converts what it reads. */
export type RawRow = Record<string, unknown>;

export const NO_DATABASE = 'drizzle-queue needs a Drizzle database or transaction';

/** For callers without TypeScript, who easily forget it. @throws TypeError unless `db` can be one */
export function checkExecutor(caller: string, db: object): void {
  if (can(db, 'execute')) return;
  // postgres.js, and node-postgres or PGlite.
  const isClient = can(db, 'unsafe') || can(db, 'query');
  // Not the value: a URL has a password.
  const got = isClient ? 'a client: use drizzle()' : typeof db;
  throw new TypeError(`${NO_DATABASE}: ${caller}(db, …); got ${got}`);
}

function can(given: unknown, method: string): boolean {
  return typeof Reflect.get(Object(given), method) === 'function';
}

/** For callers without TypeScript. @throws TypeError unless `db` is a transaction */
export function checkTransaction(caller: string, db: object): void {
  if (can(db, 'rollback')) return;
  throw new TypeError(
    `${caller}: this queue requires a transaction (createQueue({ requireTransaction: true })): ` +
      `db.transaction((tx) => queue.${caller}(tx, …))`,
  );
}

/**
 * Refuses a transaction that has ended, where the driver knows it: what it sends now commits by itself, or
 * with whatever its connection is used for next. node-postgres knows what the server said last; postgres.js
 * cannot tell, and PGlite refuses by itself.
 *
 * **Under concurrency.** Once the connection serves another transaction, it says that of that one.
 *
 * @throws QueueError when it has ended
 */
export function checkOpen(caller: string, db: object): void {
  if (!can(db, 'rollback')) return;
  const client: unknown = Reflect.get(Object(Reflect.get(db, 'session')), 'client');
  const status: unknown = Reflect.get(Object(client), 'getTransactionStatus');
  if (typeof status !== 'function' || Reflect.apply(status, client, []) !== IDLE) return;
  throw new QueueError(
    `${caller}: this transaction has ended, so the job would be committed by itself. ` +
      'Await everything in the function of db.transaction, and do not use its tx afterwards',
  );
}

/** In the protocol: a connection is in no transaction. */
const IDLE = 'I';

/**
 * Runs one of our statements and returns its rows.
 *
 * @param withUsersSql whether it contains SQL of the user, whose missing tables and columns are not our
 * missing migration
 * @param entry what the app's schema must export for this statement, beside the tables of the queue itself
 * @throws TypeError when `db` is not a database
 * @throws MissingMigrationError when the queue's tables or columns are missing
 * @throws QueueError when the database refuses what a feature has added; other errors of the driver pass
 * unchanged
 */
export async function queryRows(
  db: Runner,
  tables: QueueTables,
  query: SQL,
  { withUsersSql = false, entry }: { readonly withUsersSql?: boolean; readonly entry?: string } = {},
): Promise<RawRow[]> {
  // Callers without TypeScript easily forget the first argument.
  if (!can(db, 'execute')) throw new TypeError(NO_DATABASE);
  let result: unknown;
  try {
    result = await db.execute(query);
  } catch (error) {
    const members = membersIn(tables);
    const groups = groupsInAny(tables);
    throw (
      missingMigration(error, [{ tables }, members, groups], withUsersSql, entry) ??
      members?.refusal(error) ??
      groups?.refusal(error) ??
      error
    );
  }
  const rows = rowsOf(result);
  if (rows === undefined) throw new TypeError(NO_DATABASE);
  return rows;
}

/** The rows of what `db.execute` returns; `undefined` when it is no result. */
export function rowsOf(result: unknown): RawRow[] | undefined {
  // postgres.js, Bun and pg-proxy return an array; pg, PGlite, Neon and the HTTP drivers return { rows }, and
  // Xata { records }.
  if (Array.isArray(result)) return result;
  const { rows, records } = Object(result) as { rows?: RawRow[]; records?: RawRow[] };
  return rows ?? records;
}

interface DriverError extends Error {
  readonly code?: unknown;
  readonly errno?: unknown;
  readonly syscall?: unknown;
  readonly where?: string;
  /** Of Prisma alone, whose `code` is one of its own. */
  readonly clientVersion?: unknown;
  readonly meta?: {
    readonly code?: unknown;
    readonly driverAdapterError?: { readonly cause?: { readonly originalCode?: unknown } };
  };
}

/** The SQLSTATE of a failed query, wherever the driver puts it. */
export function sqlStateOf(error: unknown): string | undefined {
  for (const at of causesOf(error)) {
    const { code, errno, syscall, clientVersion, meta } = at as DriverError;
    const adapter = meta?.driverAdapterError?.cause;
    // Of the system, whose code is a name such as EPIPE; or of Prisma, but for a raw query, which all are.
    if (typeof errno === 'number' || syscall || (clientVersion && code !== 'P2010')) continue;
    // Of a connection: what the server refuses has a code.
    if (adapter && !adapter.originalCode) continue;
    // Bun has it in `errno`, and names in `code`; Prisma has it in `meta`, and deeper there with an adapter.
    for (const value of [meta?.code, adapter?.originalCode, code, errno]) {
      if (typeof value === 'string' && /^[0-9A-Z]{5}$/.test(value)) return value;
    }
  }
  return undefined;
}

/** @param parts what the statement may use, each with the entry that exports it */
function missingMigration(
  error: unknown,
  parts: readonly (Part | undefined)[],
  withUsersSql: boolean,
  entry: string | undefined,
): MissingMigrationError | undefined {
  const sqlState = sqlStateOf(error);
  const lacksColumn = sqlState === '42703';
  // Nor a table.
  if (!lacksColumn && sqlState !== '42P01') return undefined;
  // Not Drizzle's error around it, which repeats the parameters and so the payload.
  const ofDriver: DriverError | undefined = causesOf(error).at(-1);
  // What a trigger's function lacks is the app's: the library has no functions. Some servers say so in
  // another language. Citus, which says where as well, names none.
  if (/PL\/|function /.test(ofDriver?.where ?? '')) return undefined;
  const message = ofDriver?.message ?? '';
  const named = parts.find((part) =>
    Object.values(part?.tables ?? {}).some((table) =>
      new RegExp(`\\b${getTableName(table)}\\b`).test(message),
    ),
  );
  // The message often names a column by an alias or a CTE, but all columns of our statements are ours.
  if (!named && (!lacksColumn || withUsersSql)) return undefined;
  const what = `The queue's tables are not up to date (${message})`;
  return new MissingMigrationError(what, { cause: ofDriver }, entry ?? named?.entry);
}

interface Part {
  readonly tables: Readonly<Record<string, PgTable>> | QueueTables;
  readonly entry?: string;
}
