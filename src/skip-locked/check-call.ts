import { is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import type { QueryBuilders } from './query-builders.ts';
import { shown } from './shown.ts';

/** Catches without TypeScript what would fail deep inside. @throws TypeError naming what is wrong */
export function checkCall(what: string, db: QueryBuilders, table: PgTable, options: object): void {
  if (typeof db?.update !== 'function') {
    throw new TypeError(
      `${what} needs a Drizzle database or transaction as the first argument; got ${shown(db)}`,
    );
  }
  if (!is(table, PgTable)) throw new TypeError(`${what} needs a Drizzle table; got ${shown(table)}`);
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${what}: options must be an object; got ${shown(options)}`);
  }
}
