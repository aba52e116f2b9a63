import { is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import type { QueryBuilders } from './query-builders.ts';
import { shown } from './shown.ts';

/**
 * Checks, for callers without TypeScript, what the types require. Otherwise the error would come from deep
 * inside.
 *
 * @throws TypeError naming what is missing
 */
export function checkCall(what: string, db: QueryBuilders, table: PgTable, options: object): void {
  if (typeof db?.update !== 'function') {
    throw new TypeError(
      `${what} needs a Drizzle database or transaction as the first argument; got ${shown(db)}`,
    );
  }
  if (!is(table, PgTable)) throw new TypeError(`${what} needs a Drizzle table; got ${shown(table)}`);
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${what}: its options must be an object; got ${shown(options)}`);
  }
}
