/**
 * Pop: the first row that nobody has locked is deleted and answered, in one statement.
 *
 * After Tomás Farías Santana, "TIL: SKIP LOCKED can be used to implement a queue in PostgreSQL".
 */
import { sql } from 'drizzle-orm';
import { integer, pgTable, serial } from 'drizzle-orm/pg-core';
import { popRows } from 'drizzle-queue/skip-locked';
import { runConsumers, takeAll } from './stage/consumers.ts';
import type { Db } from './stage/database.ts';
import { type Program, runProgram } from './stage/run-program.ts';
import { checkTakenOnce } from './stage/taken-once.ts';

/** The article's table. */
export const queue = pgTable('queue', { index: serial('index').primaryKey(), item: integer('item') });
export const createTable = sql`create table queue (index serial primary key, item int)`;

export function enqueue(db: Db, count: number) {
  return db.execute(sql`insert into queue (item) select n from generate_series(1, ${count}::int) as n`);
}

/** The article's last statement. */
export function dequeue(db: Db) {
  return popRows(db, queue, { orderBy: queue.index, returning: { item: queue.item } });
}

const ITEMS = 400;
const CONSUMERS = 4;

export const main: Program = async ({ db, url, say }) => {
  await db.execute(createTable);
  await enqueue(db, ITEMS);

  // Outside a transaction an item is gone when it is answered: a consumer that died now would take it along. Inside one, the
  // item comes back with the rollback, whether the program asks for that or Postgres notices that the program is gone.
  await db
    .transaction(async (tx) => {
      const [popped] = await dequeue(tx);
      say(`A consumer pops item ${popped?.item} in a transaction, and dies.`);
      tx.rollback();
    })
    .catch(() => undefined);
  say(`${await db.$count(queue)} of ${ITEMS} items are in the queue.`);

  const taken = await runConsumers(url, CONSUMERS, (db) => takeAll(async () => (await dequeue(db))[0]?.item));
  for (const [index, { length }] of taken.entries()) say(`Consumer ${index + 1} took ${length} items.`);

  checkTakenOnce(taken.flat().map(Number), ITEMS);
  say('Every item was taken exactly once.');
};

await runProgram(import.meta, main);
