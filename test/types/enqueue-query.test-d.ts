import { sql } from 'drizzle-orm';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import { type BatchEnqueueResult, createQueue, defineJob } from 'drizzle-queue';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  bun,
  mysql2,
  neonHttp,
  neonServerless,
  nodePostgres,
  pglite,
  pgProxy,
  postgresJs,
  sqliteProxy,
} from './databases.ts';

const queue = createQueue();
const orders = pgTable('orders', { id: integer('id').primaryKey() });
const send = defineJob('send', { payload: z.object({ to: z.string() }) });
const sync = defineJob('sync');

describe('enqueueQuery', () => {
  test('is a query for a batch of neon-http, whose answer is typed', async () => {
    const [inserted, [enqueued], [plain]] = await neonHttp.batch([
      neonHttp.insert(orders).values({ id: 1 }).returning(),
      queue.enqueueQuery(neonHttp, send, { to: 'ada' }),
      queue.enqueueQuery(neonHttp, sync),
    ]);
    expectTypeOf(inserted).toEqualTypeOf<{ id: number }[]>();
    expectTypeOf(enqueued).toEqualTypeOf<BatchEnqueueResult>();
    expectTypeOf(plain).toEqualTypeOf<BatchEnqueueResult>();
    await neonHttp.batch([queue.enqueueQuery(neonHttp, sync), neonHttp.execute(sql`select 1`)]);
    // @ts-expect-error a promise is no query
    await neonHttp.batch([queue.enqueue(neonHttp, sync)]);
  });

  test('may be awaited', () => {
    expectTypeOf(queue.enqueueQuery(postgresJs, sync)).resolves.toEqualTypeOf<[BatchEnqueueResult]>();
  });

  test('says by its type that a duplicate may have no id', () => {
    const enqueued = {} as BatchEnqueueResult;
    if (enqueued.duplicate) expectTypeOf(enqueued.id).toEqualTypeOf<number | null>();
    else expectTypeOf(enqueued.id).toEqualTypeOf<number>();
  });

  test('takes a Drizzle database of any Postgres driver, and their transactions', () => {
    queue.enqueueQuery(postgresJs, sync);
    queue.enqueueQuery(nodePostgres, sync);
    queue.enqueueQuery(pglite, sync);
    queue.enqueueQuery(neonServerless, sync);
    queue.enqueueQuery(pgProxy, sync);
    queue.enqueueQuery(bun, sync);
    nodePostgres.transaction(async (tx) => await queue.enqueueQuery(tx, sync));
    // @ts-expect-error MySQL
    queue.enqueueQuery(mysql2, sync);
    // @ts-expect-error SQLite
    queue.enqueueQuery(sqliteProxy, sync);
    // @ts-expect-error the database comes first
    queue.enqueueQuery(sync);
  });

  test('takes payload and options as enqueue does', () => {
    queue.enqueueQuery(neonHttp, send, { to: 'ada' }, { uniqueKey: 'k', delayMs: 5 });
    // @ts-expect-error no payload
    queue.enqueueQuery(neonHttp, send);
    // @ts-expect-error wrong payload
    queue.enqueueQuery(neonHttp, send, { to: 5 });
    // @ts-expect-error unknown option
    queue.enqueueQuery(neonHttp, send, { to: 'ada' }, { delay: 5 });
    // @ts-expect-error a payload where there is none
    queue.enqueueQuery(neonHttp, sync, 'all');
  });
});
