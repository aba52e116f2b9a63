import type { Database } from '../../../index.ts';
import { Failure } from '../failure.ts';
import { importFrom } from './load-module.ts';

/** How to reach a database: an address, or the single parts that drizzle.config.ts may have. */
export type Credentials = string | Readonly<Record<string, unknown>> | undefined;

export interface Connected {
  readonly db: Database;
  readonly close: () => Promise<void>;
}

const CONNECTIONS = 5;
const CONNECT_SECONDS = 10;

/**
 * Opens a database by the driver that the app has, postgres or pg. Without credentials both take the
 * environment's PGHOST, PGUSER and the like.
 *
 * @throws Failure when it has neither
 */
export async function connect(folder: string, credentials: Credentials): Promise<Connected> {
  checkAddress(credentials);
  const opened = (await withPostgresJs(folder, credentials)) ?? (await withNodePostgres(folder, credentials));
  if (opened !== undefined) return opened;
  throw new Failure(
    'No Postgres driver is installed: run `npm i postgres` or `npm i pg` here, or write a ' +
      'queue.config.ts with the db of your app',
  );
}

async function withPostgresJs(folder: string, credentials: Credentials): Promise<Connected | undefined> {
  const driver = await importFrom(folder, 'postgres');
  if (driver === undefined) return undefined;
  const open = functionOf(driver.default);
  const { drizzle } = await import('drizzle-orm/postgres-js');
  const options = {
    max: CONNECTIONS,
    connect_timeout: CONNECT_SECONDS,
    // A command asks once; and prepared statements fail behind poolers.
    prepare: false,
    onnotice: () => undefined,
    connection: { application_name: 'drizzle-queue' },
  };
  // It is postgres.js, by the name of its package; its parts of an address have these names, too.
  const client = (
    typeof credentials === 'string' ? open(credentials, options) : open({ ...credentials, ...options })
  ) as { end(options: { timeout: number }): Promise<void> };
  const db: Database = byItsClient(drizzle, client);
  return { db, close: () => client.end({ timeout: 1 }) };
}

async function withNodePostgres(folder: string, credentials: Credentials): Promise<Connected | undefined> {
  const driver = await importFrom(folder, 'pg');
  if (driver === undefined) return undefined;
  const Pool: unknown = Reflect.get(Object(driver.default ?? driver), 'Pool');
  const { drizzle } = await import('drizzle-orm/node-postgres');
  const address = typeof credentials === 'string' ? { connectionString: credentials } : { ...credentials };
  if (typeof Pool !== 'function') throw unknownDriver();
  const pool: PoolLike = Reflect.construct(Pool, [
    {
      ...address,
      max: CONNECTIONS,
      connectionTimeoutMillis: CONNECT_SECONDS * 1_000,
      application_name: 'drizzle-queue',
    },
  ]);
  // Without a listener a broken connection ends the process; the next statement says so anyway.
  pool.on('error', () => undefined);
  const db: Database = byItsClient(drizzle, pool);
  return { db, close: () => pool.end() };
}

/** drizzle-orm 0.34 and 0.35 take a client alone; `mock` came with the form that 1.0 needs. */
function byItsClient(drizzle: object, client: unknown): Database {
  const given = 'mock' in drizzle ? { client } : client;
  // Both are functions that return a database.
  return Reflect.apply(drizzle as () => Database, undefined, [given]);
}

interface PoolLike {
  on(event: 'error', listener: () => void): unknown;
  end(): Promise<void>;
}

function functionOf(value: unknown): (...args: unknown[]) => unknown {
  if (typeof value === 'function') return (...args) => Reflect.apply(value, undefined, args);
  throw unknownDriver();
}

function unknownDriver(): Failure {
  return new Failure('The driver of the app has an unknown version: write a queue.config.ts with its db');
}

function checkAddress(credentials: Credentials): void {
  if (typeof credentials !== 'string') return;
  let protocol: string | undefined;
  try {
    ({ protocol } = new URL(credentials));
  } catch {
    // A password that is not percent-encoded, for example. The address is not shown: it has the password.
  }
  if (protocol === 'postgres:' || protocol === 'postgresql:') return;
  throw new Failure(
    'The address of the database must look like postgres://user:password@host:5432/name' +
      (protocol === undefined ? '' : `, but this one starts with ${protocol}//`),
    2,
  );
}
