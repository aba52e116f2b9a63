import { is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import { shown } from '../job/shown.ts';

/** What a role may be allowed to do with a table. */
export type Privilege = 'select' | 'insert' | 'update' | 'delete';

/** The tables that a feature brings to a worker, beside those of the queue. */
export interface FeatureTables {
  /** By the names under which their entry exports them. */
  readonly tables: object;
  /** The entry that exports them, for the error that names a missing migration. */
  readonly entry: string;
  /** What a worker does with each of them, by name. @default everything, also for a name that is missing */
  readonly privileges?: Readonly<Record<string, readonly Privilege[]>> | undefined;
  /** What a worker does with the queue's jobs for the sake of the feature, beyond what each worker does. */
  readonly ofJobs?: readonly Privilege[] | undefined;
}

/** @throws TypeError naming what is not a table of what the app has given `caller` as those of an entry */
export function checkTables(caller: string, entry: string, given: Readonly<Record<string, unknown>>): void {
  for (const [name, table] of Object.entries(given)) {
    if (is(table, PgTable)) continue;
    throw new TypeError(`${caller} takes the tables of '${entry}'; its ${name} is ${shown(table)}`);
  }
}

export function namedTables(tables: object): (readonly [name: string, table: PgTable])[] {
  return Object.keys(tables).flatMap((name) => {
    const table: unknown = Reflect.get(tables, name);
    return is(table, PgTable) ? [[name, table] as const] : [];
  });
}
