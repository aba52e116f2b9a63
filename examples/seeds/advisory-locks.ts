/**
 * Advisory locks: the queue of the time before SKIP LOCKED. A consumer looks at a window of candidates and takes the first one
 * whose number it can lock.
 *
 * After Marko Tiikkaja, "Queues in SQL" (2010), and the comments below it.
 */
import { eq, type SQL, sql } from 'drizzle-orm';
import { boolean, index, pgTable, serial } from 'drizzle-orm/pg-core';
import { runConsumers, takeAll } from './stage/consumers.ts';
import type { Db } from './stage/database.ts';
import { type Program, runProgram } from './stage/run-program.ts';
import { checkTakenOnce } from './stage/taken-once.ts';

/** The article's table and index. */
export const items = pgTable(
  'items',
  { id: serial('id').primaryKey(), available: boolean('available').notNull().default(true) },
  (table) => [index('items_lookup_index').on(table.id).where(sql`available`)],
);
export const createTable = sql`
  create table items (id serial primary key, available boolean default true not null);
  create index items_lookup_index on items (id) where available`;

/** How many candidates a consumer looks at: as many as there are consumers, and one is left for each. */
const WINDOW = 16;

/**
 * The first candidate that can be locked. `materialized`, twice: the window is read before any lock is tried, and the lock is tried once
 * per candidate, in order, until it is had. Without, the planner may try locks on rows that it then throws away. The lock
 * belongs to the transaction, so nobody has to give it back, and the class keeps it apart from the locks of other tables.
 */
const firstLocked = sql`
  with candidates as materialized (select id from items where available order by id limit ${sql.raw(String(WINDOW))}),
    locked as materialized (
      select id from candidates where pg_try_advisory_xact_lock('items'::regclass::int, id) limit 1)
  select id from locked`;

/**
 * Takes the first free item. Returns nothing when all candidates are locked, or when the one that it locked had just been
 * taken: then `available` is no longer true of the row as it is now. Ask again while there are items.
 */
export function take(db: Db) {
  return db
    .update(items)
    .set({ available: false })
    .where(sql`${items.id} = any(array(${firstLocked})) and ${items.available}`)
    .returning({ id: items.id });
}

/** How many advisory locks this connection holds after the query, before and after the transaction's end. */
async function countLocks(db: Db, query: SQL): Promise<string> {
  const count = async (db: Pick<Db, 'execute'>) => {
    const rows = await db.execute(sql`
      select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`);
    return rows.length;
  };
  const before = await db.transaction(async (tx) => {
    await tx.execute(query);
    return await count(tx);
  });
  const after = await count(db);
  await db.execute(sql`select pg_advisory_unlock_all()`);
  return `${before} before the commit, ${after} after it`;
}

const ITEMS = 200;

export const main: Program = async ({ db, url, say }) => {
  await db.execute(createTable);
  await db.execute(sql`insert into items select from generate_series(1, ${ITEMS}::int)`);

  const first = sql`select min(id) from items where available and pg_try_advisory_lock(id)`;
  say(`Advisory locks after min(id) of what can be locked: ${await countLocks(db, first)}.`);
  await db.execute(
    sql`set enable_indexscan = off; set enable_indexonlyscan = off; set enable_bitmapscan = off`,
  );
  say(`The same, when the planner reads the whole table: ${await countLocks(db, first)}.`);
  say(`The window of candidates, in the same case: ${await countLocks(db, firstLocked)}.`);

  let retries = 0;
  const taken = await runConsumers(url, 4, (db) =>
    takeAll(async () => {
      for (;;) {
        const [item] = await take(db);
        if (item !== undefined) {
          // Here it would be worked on.
          await db.delete(items).where(eq(items.id, item.id));
          return item.id;
        }
        if ((await db.$count(items, eq(items.available, true))) === 0) return undefined;
        retries++;
      }
    }),
  );
  say(`${taken.length} consumers took ${taken.flat().length} items, and had to ask again ${retries} times.`);
  const left = await db.execute(sql`
    select from pg_locks where locktype = 'advisory'
      and database = (select oid from pg_database where datname = current_database())`);
  say(`${left.length} advisory locks are left.`);
  if (left.length > 0) throw new Error('An advisory lock has leaked');
  checkTakenOnce(taken.flat(), ITEMS);
  say('Every item was taken exactly once.');
};

await runProgram(import.meta, main);
