/**
 * Hold: the row is marked, worked on outside any transaction, and marked as finished. Beside it, the query that the article starts
 * from, with which any number of consumers work one after the other.
 *
 * After Phil Sorber, "You keep using that query. I do not think it does what you think it does" (2012).
 */
import { and, eq, isNull, lt, or, sql } from 'drizzle-orm';
import { pgTable, serial, timestamp } from 'drizzle-orm/pg-core';
import { holdRows } from 'drizzle-queue/skip-locked';
import { runConsumers, takeAll } from './stage/consumers.ts';
import type { Db } from './stage/database.ts';
import { type Program, runProgram } from './stage/run-program.ts';
import { sayTable } from './stage/say-table.ts';
import { checkTakenOnce } from './stage/taken-once.ts';
import { Workplace, work } from './stage/work.ts';

/** Times as text: a Date ends at milliseconds, and a hold is told from the next one by Postgres's microseconds. */
const time = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' });

/** The article's table. Its index is ours: rows that are not finished, in the order in which they are taken. */
export const foo = pgTable('foo', {
  id: serial('id').primaryKey(),
  createdAt: time('created_at').notNull().defaultNow(),
  processingStartedAt: time('processing_started_at'),
  processingFinishedAt: time('processing_finished_at'),
});
export const createTable = sql`
  create table foo (id serial primary key, created_at timestamptz not null default now(),
    processing_started_at timestamptz, processing_finished_at timestamptz);
  create index foo_unfinished on foo (created_at, id) where processing_finished_at is null`;

const fields = { id: foo.id, startedAt: foo.processingStartedAt };
type Held = { id: number; startedAt: string | null };

/** Holds the next row. A hold that is older than `seconds` is nobody's: whoever had it has died, or is too late. */
export function hold(db: Db, seconds = 60) {
  const expired = lt(foo.processingStartedAt, sql`now() - ${seconds}::float8 * interval '1 second'`);
  return holdRows(db, foo, {
    set: { processingStartedAt: sql`now()` },
    where: and(isNull(foo.processingFinishedAt), or(isNull(foo.processingStartedAt), expired)),
    orderBy: [foo.createdAt, foo.id],
    returning: fields,
  });
}

/** Finishes a row, if this very hold still stands; returns nothing when another consumer has taken the row over. */
export function finish(db: Db, { id, startedAt }: Held) {
  const stillHeld = and(eq(foo.id, id), sql`${foo.processingStartedAt} = ${startedAt}::timestamptz`);
  return db.update(foo).set({ processingFinishedAt: sql`now()` }).where(stillHeld).returning({ id: foo.id });
}

/** The query that the article starts from: whoever comes second waits until the first one is done with the row. */
export async function blockAndFinish(db: Db, doWork: () => Promise<void>): Promise<number | undefined> {
  return await db.transaction(async (tx) => {
    const [row] = await tx.select(fields).from(foo).where(isNull(foo.processingFinishedAt))
      .orderBy(foo.createdAt, foo.id).limit(1).for('update'); // biome-ignore format: one query
    if (row === undefined) return undefined;
    await doWork();
    await tx.update(foo).set({ processingFinishedAt: sql`now()` }).where(eq(foo.id, row.id));
    return row.id;
  });
}

/** Holds, works, finishes. Returns the row that was finished, or `undefined` when none is free. */
async function holdAndFinish(
  db: Db,
  doWork: () => Promise<void>,
  seconds?: number,
): Promise<number | undefined> {
  const [held] = await hold(db, seconds);
  if (held === undefined) return undefined;
  await doWork();
  const [finished] = await finish(db, held);
  // It was too slow, and the row is another's: it goes on with the next.
  return finished?.id ?? (await holdAndFinish(db, doWork, seconds));
}

const ROWS = 60;
const WORK_MS = 5;
const HOLD_SECONDS = 1;

export const main: Program = async ({ db, url, say }) => {
  await db.execute(createTable);
  const measured = [];
  for (const [query, workOne] of Object.entries({ 'FOR UPDATE': blockAndFinish, hold: holdAndFinish })) {
    for (const consumers of [1, 4]) {
      await db.execute(sql`truncate foo restart identity`);
      await db.execute(sql`insert into foo select from generate_series(1, ${ROWS}::int)`);
      const place = new Workplace(WORK_MS);
      const start = performance.now();
      const finished = await runConsumers(url, consumers, (db) => takeAll(() => workOne(db, place.work)));
      const ms = Math.round(performance.now() - start);
      checkTakenOnce(finished.flat(), ROWS);
      measured.push({ query, consumers, 'at work at once': place.most, [`ms for ${ROWS} rows`]: ms });
    }
  }
  sayTable(say, measured);

  // The article leaves open what becomes of a row whose holder has died.
  await db.execute(sql`update foo set processing_started_at = null, processing_finished_at = null`);
  const [lost] = await hold(db);
  if (lost === undefined) throw new Error('There was no row to hold');
  say(`A consumer holds row ${lost.id}, and dies.`);
  const finished = await runConsumers(url, 4, async (db) => {
    const mine: number[] = [];
    while ((await db.$count(foo, isNull(foo.processingFinishedAt))) > 0) {
      const id = await holdAndFinish(db, () => work(WORK_MS), HOLD_SECONDS);
      if (id !== undefined) mine.push(id);
      // All others are held, or locked at this moment.
      else await work(20);
    }
    return mine;
  });
  say(`The others finish all ${finished.flat().length} rows, row ${lost.id} too, once its hold has ended.`);
  say(`Back from the dead, the first one finishes ${(await finish(db, lost)).length} rows.`);
  checkTakenOnce(finished.flat(), ROWS);
  say('Every row was finished exactly once.');
};

await runProgram(import.meta, main);
