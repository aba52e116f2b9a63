import type { Database } from 'drizzle-queue';
import type { QueryBuilders } from 'drizzle-queue/skip-locked';

/**
 * What a behaviour needs beyond statements that run one by one:
 * - `transactions`: interactive ones, as in `db.transaction(async (tx) => …)`;
 * - `no transactions`: none of those;
 * - `batches`: `db.batch([…])`, whose queries are one transaction;
 * - `connections`: more than one at a time, so that two transactions may be open;
 * - `listening`: a way to hear notifications;
 * - `no listening`: none;
 * - `session`: a connection of the worker's own, on which statements can be run;
 * - `no session`: a connection of the worker's own, on which none can be run;
 * - `server`: one that runs apart, whose connections can be ended from outside;
 * - `groups`: a server that takes the claims of groups, which Citus does not.
 */
export type Need =
  | 'transactions'
  | 'no transactions'
  | 'batches'
  | 'connections'
  | 'listening'
  | 'no listening'
  | 'session'
  | 'no session'
  | 'server'
  | 'groups';

/** A driver of Drizzle on a database with all tables of the library, where behaviours are shown. */
export interface Site {
  readonly db: Database & QueryBuilders;
  /** How many workers run on it beside the behaviour's own. */
  readonly companions: number;
  /** Ends all connections to the database, as a failing network or a restarting server would; answers how many. */
  endConnections(): Promise<number>;
}

/**
 * Something that the library does on every driver that has what it needs. It fails by throwing, and stands alone: in any order,
 * on tables in which others have left their rows, each with kinds and queues of its own. Uses nothing of a test runner, so that it
 * runs wherever JavaScript does.
 */
export interface Behaviour {
  readonly name: string;
  readonly needs?: readonly Need[];
  run(site: Site): Promise<void>;
}

/** The rows of a raw query as a plain array: drivers answer an array of a class of their own, or an object that holds one. */
export function rowsOf(result: unknown): readonly Record<string, unknown>[] {
  // One of the two shapes, by the drivers' own documentation.
  return Array.isArray(result) ? Array.from(result) : (result as { rows: Record<string, unknown>[] }).rows;
}
