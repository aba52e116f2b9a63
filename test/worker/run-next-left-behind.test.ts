import type { PGlite } from '@electric-sql/pglite';
import { sql } from 'drizzle-orm';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  type Database,
  defineJob,
  fixedBackoff,
  handle,
  runNext,
  type Transaction,
} from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rowsOf } from '../integration/behaviours/behaviour.ts';
import { gate } from '../support/gate.ts';
import { openPglite } from '../support/pglite.ts';
import { useTestDatabase } from '../support/test-database.ts';

const queue = createQueue();
const effects = pgTable('effects', { n: integer('n').notNull() });
/** Its time is long enough for what the handlers here do before it is over, on a busy machine too. */
const hanging = defineJob('hanging', { timeoutMs: 1_000, maxAttempts: 5, backoff: fixedBackoff(3_600_000) });

/** What of a Drizzle transaction the handlers here use, of any driver. */
interface Tx extends Transaction {
  insert(table: typeof effects): { values(row: { n: number }): InsertQuery };
  select(): { from(table: typeof effects): PromiseLike<unknown> };
}
interface InsertQuery extends PromiseLike<unknown> {
  prepare(name: string): { execute(): Promise<unknown> };
}

/** What a promise came to. */
const outcomeOf = (promise: PromiseLike<unknown>) =>
  Promise.resolve(promise).then(
    (value) => ({ value }),
    (error: unknown) => error,
  );

const refused = { name: 'LeaseLostError', message: expect.stringContaining('already over') };

/** The same on one connection of each driver: what follows the attempt gets the very connection that the attempt had. */
function leftBehind(db: () => Database, { inProcess = false } = {}): void {
  beforeAll(async () => {
    await db().execute(sql`create table effects (n int not null)`);
  });
  const written = async () =>
    rowsOf(await db().execute(sql`select n from effects order by n`)).map(({ n }) => n);

  test('sends nothing into the transaction that has its connection after it', async () => {
    const over = gate();
    const inSavepoint = gate();
    let done: Promise<unknown[]> = Promise.resolve([]);
    await queue.enqueue(db(), hanging);
    const handlers = [
      handle<typeof hanging, Tx>(hanging, async ({ db: tx, complete }) => {
        await tx.insert(effects).values({ n: 1 });
        const built = tx.insert(effects).values({ n: 2 });
        const prepared = tx.insert(effects).values({ n: 3 }).prepare('left_behind');
        const savepoint = tx.transaction(async (nested) => {
          inSavepoint.open();
          await over.opened;
          await nested.execute(sql`insert into effects values (4)`);
        });
        const swallowing = outcomeOf(savepoint);
        await over.opened;
        done = Promise.all([
          outcomeOf(built),
          outcomeOf(prepared.execute()),
          swallowing,
          outcomeOf(tx.execute(sql`insert into effects values (5)`)),
          outcomeOf(tx.select().from(effects)),
          outcomeOf(
            tx.transaction(async (nested) => await nested.execute(sql`insert into effects values (6)`)),
          ),
          outcomeOf(complete(tx)),
        ]);
        await done;
      }),
    ];
    // Drizzle hands over its own transaction type, which has what `Tx` says.
    const options = { queue, handlers } as unknown as Parameters<typeof runNext<Database, never>>[1];
    expect(await runNext(db(), options)).toMatchObject({
      outcome: 'failed',
      error: { name: 'JobTimeoutError' },
    });
    await inSavepoint.opened;
    await db().transaction(async (next) => {
      await next.execute(sql`insert into effects values (100)`);
      over.open();
      // The handler goes on in a later turn.
      await new Promise(setImmediate);
      expect(await done).toEqual(Array.from({ length: 7 }, () => expect.objectContaining(refused)));
      // Neither aborted nor rolled back by a savepoint's end that is none of its own.
      await next.execute(sql`insert into effects values (101)`);
    });
    expect(await written()).toEqual([100, 101]);
  });

  // In the process itself a statement that sleeps keeps the timer from firing.
  test.skipIf(inProcess)('a statement that is under way at the timeout is let end, and undone', async () => {
    await queue.enqueue(db(), hanging);
    let after: unknown;
    const ended = gate();
    const handlers = [
      handle<typeof hanging, Tx>(hanging, async ({ db: tx }) => {
        await tx.execute(sql`insert into effects select 200 from pg_sleep(2)`);
        after = await outcomeOf(tx.execute(sql`insert into effects values (201)`));
        ended.open();
      }),
    ];
    const options = { queue, handlers } as unknown as Parameters<typeof runNext<Database, never>>[1];
    expect(await runNext(db(), options)).toMatchObject({ error: { name: 'JobTimeoutError' } });
    await ended.opened;
    expect(after).toMatchObject(refused);
    expect(await written()).toEqual([100, 101]);
  });

  test('a handler that has returned has no database any more either', async () => {
    const quick = defineJob('quick');
    let kept: Database | undefined;
    await queue.enqueue(db(), quick);
    const handlers = [
      handle(quick, ({ db: tx }) => {
        kept = tx;
      }),
    ];
    const options = { queue, handlers } as unknown as Parameters<typeof runNext<Database, never>>[1];
    expect(await runNext(db(), options)).toMatchObject({ outcome: 'completed' });
    if (kept === undefined) throw new Error('it did not run');
    expect(await outcomeOf(kept.execute(sql`insert into effects values (300)`))).toMatchObject(refused);
    expect(await written()).toEqual([100, 101]);
  });

  test('a job that another runs in its transaction sends nothing once one of them is over', async () => {
    const inside = defineJob('inside', { maxAttempts: 1 });
    const over = gate();
    const done = gate();
    const seen: unknown[] = [];
    const dbs: Database[] = [];
    await queue.enqueue(db(), hanging);
    await queue.enqueueMany(db(), inside, [{}, {}]);
    const insertBy = (tx: Database | undefined, n: number) =>
      outcomeOf(tx?.execute(sql`insert into effects values (${sql.raw(String(n))})`) ?? Promise.reject());
    const within = handle(inside, async ({ db: tx }) => {
      dbs.push(tx);
      await insertBy(tx, 400);
      if (dbs.length < 2) return;
      await over.opened;
      seen.push(await insertBy(tx, 402));
      done.open();
    });
    const run = (tx: Database, handlers: object[]) =>
      runNext(tx, { queue, handlers } as unknown as Parameters<typeof runNext<Database, never>>[1]);
    const outer = handle(hanging, async ({ db: tx }) => {
      seen.push(await run(tx, [within]));
      seen.push(await insertBy(dbs[0], 401), await insertBy(tx, 403));
      await run(tx, [within]);
    });
    expect(await run(db(), [outer])).toMatchObject({ error: { name: 'JobTimeoutError' } });
    over.open();
    await done.opened;
    expect(seen).toMatchObject([{ outcome: 'completed' }, refused, { value: expect.anything() }, refused]);
    expect(await written()).toEqual([100, 101]);
    await db().execute(sql`delete from queue_jobs`);
  });
}

describe('a handler that runNext left behind', () => {
  describe('on postgres.js', () => {
    const database = useTestDatabase();
    let client: postgres.Sql;
    beforeAll(() => {
      client = postgres(database.url, { max: 1 });
    });
    afterAll(() => client.end({ timeout: 1 }));
    leftBehind(() => drizzlePostgresJs({ client }));
  });

  describe('on a pool of node-postgres', () => {
    const database = useTestDatabase();
    let pool: pg.Pool;
    beforeAll(() => {
      pool = new pg.Pool({ connectionString: database.url, max: 1 });
      pool.on('error', () => {});
    });
    afterAll(() => pool.end());
    leftBehind(() => drizzlePg({ client: pool }));
  });

  describe('on a single client of node-postgres', () => {
    const database = useTestDatabase();
    let client: pg.Client;
    beforeAll(async () => {
      client = new pg.Client({ connectionString: database.url });
      await client.connect();
    });
    afterAll(() => client.end());
    leftBehind(() => drizzlePg({ client }));
  });

  describe('on PGlite', () => {
    let client: PGlite;
    beforeAll(async () => {
      client = await openPglite();
    });
    afterAll(() => client.close());
    leftBehind(() => drizzlePglite({ client }), { inProcess: true });
  });
});
