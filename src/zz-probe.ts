import type { Placeholder, QueryPromise, SQL, SQLWrapper } from 'drizzle-orm';
import { drizzle as drizzleLite } from 'drizzle-orm/better-sqlite3';
import { drizzle as drizzleMy } from 'drizzle-orm/mysql2';
import { drizzle as neon } from 'drizzle-orm/neon-http';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import type { PgTable, PgUpdateSetSource, SelectedFieldsFlat } from 'drizzle-orm/pg-core';
import { drizzle as pglite } from 'drizzle-orm/pglite';
import { drizzle } from 'drizzle-orm/postgres-js';
import type { TypedQueryBuilder } from 'drizzle-orm/query-builders/query-builder';
import type { SelectResultFields } from 'drizzle-orm/query-builders/select.types';
export type RowOf<F> = SelectResultFields<F>;
export interface RowsQuery<F extends SelectedFieldsFlat>
  extends TypedQueryBuilder<F, RowOf<F>[]>,
    QueryPromise<RowOf<F>[]> {
  readonly _: { readonly dialect: 'pg'; readonly selectedFields: F; readonly result: RowOf<F>[] };
  execute(values?: Record<string, unknown>): Promise<RowOf<F>[]>;
  prepare(name: string): { execute(values?: Record<string, unknown>): Promise<RowOf<F>[]> };
  toSQL(): { sql: string; params: unknown[] };
}
interface Returning {
  returning(fields: SelectedFieldsFlat): PromiseLike<unknown[]> & SQLWrapper;
}
export interface Db {
  delete(table: PgTable): { where(c: SQL): Returning };
  update(table: PgTable): { set(v: PgUpdateSetSource<PgTable>): { where(c: SQL): Returning } };
}
export declare function popRows<T extends PgTable, F extends SelectedFieldsFlat = T['_']['columns']>(
  db: Db,
  table: T,
  options?: {
    where?: SQL;
    orderBy?: SQLWrapper | readonly SQLWrapper[];
    limit?: number | Placeholder;
    returning?: F;
  },
): RowsQuery<F>;

import { queueJobs } from './schema/index.ts';

const db = drizzle.mock();
const q = popRows(db, queueJobs, { limit: 1 });
const r = await q;
r[0]?.payload;
const n: number = r[0]!.id;
const q2 = popRows(db, queueJobs, { returning: { id: queueJobs.id } });
const m: { id: number }[] = await q2;
const w = db.$with('x').as(q2);
const s = await db.with(w).select().from(w);
const sid: number = s[0]!.id;
await db.transaction(async (tx) => {
  await popRows(tx, queueJobs);
});
popRows(drizzlePg.mock(), queueJobs);
popRows(pglite.mock(), queueJobs);
popRows(neon.mock(), queueJobs);
// @ts-expect-error mysql
popRows(drizzleMy.mock(), queueJobs);
// @ts-expect-error sqlite
popRows(drizzleLite.mock(), queueJobs);
// @ts-expect-error number
const bad: { id: string }[] = await q2;
console.log(n, m, sid, bad);
