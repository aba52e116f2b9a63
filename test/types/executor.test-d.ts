import {
  createQueue,
  type Database,
  defineJob,
  type Executor,
  type Transaction,
  type TransactionOf,
} from 'drizzle-queue';
import type pg from 'pg';
import type postgres from 'postgres';
import { describe, expectTypeOf, test } from 'vitest';
import {
  betterSqlite3,
  bun,
  mysql2,
  mysqlProxy,
  neonHttp,
  neonServerless,
  nodePostgres,
  pglite,
  pgProxy,
  postgresJs,
  sqliteProxy,
  vercelPostgres,
} from './databases.ts';

const queue = createQueue();
const job = defineJob('sync');

describe('where the library takes a database', () => {
  test('it takes a Drizzle database of any Postgres driver', () => {
    queue.enqueue(postgresJs, job);
    queue.enqueue(nodePostgres, job);
    queue.enqueue(pglite, job);
    queue.enqueue(neonServerless, job);
    queue.enqueue(neonHttp, job);
    queue.enqueue(vercelPostgres, job);
    queue.enqueue(pgProxy, job);
    queue.enqueue(bun, job);
  });

  test('it takes their transactions, and transactions inside those', () => {
    postgresJs.transaction(async (tx) => {
      await queue.enqueue(tx, job);
      await tx.transaction(async (inner) => await queue.enqueue(inner, job));
    });
    nodePostgres.transaction(async (tx) => {
      await queue.enqueue(tx, job);
      await tx.transaction(async (inner) => await queue.enqueue(inner, job));
    });
    pglite.transaction(async (tx) => {
      await queue.enqueue(tx, job);
      await tx.transaction(async (inner) => await queue.enqueue(inner, job));
    });
    neonServerless.transaction(async (tx) => {
      await queue.enqueue(tx, job);
      await tx.transaction(async (inner) => await queue.enqueue(inner, job));
    });
    vercelPostgres.transaction(async (tx) => {
      await queue.enqueue(tx, job);
      await tx.transaction(async (inner) => await queue.enqueue(inner, job));
    });
    bun.transaction(async (tx) => {
      await queue.enqueue(tx, job);
      await tx.transaction(async (inner) => await queue.enqueue(inner, job));
    });
  });

  test('it takes no database of another kind', () => {
    // @ts-expect-error MySQL
    queue.enqueue(mysql2, job);
    // @ts-expect-error MySQL
    queue.enqueue(mysqlProxy, job);
    // @ts-expect-error SQLite
    queue.enqueue(sqliteProxy, job);
    // @ts-expect-error SQLite
    queue.enqueue(betterSqlite3, job);
  });

  test('it takes nothing that Drizzle is not around', () => {
    // @ts-expect-error a pool of node-postgres
    queue.enqueue({} as pg.Pool, job);
    // @ts-expect-error a client of node-postgres
    queue.enqueue({} as pg.Client, job);
    // @ts-expect-error a client of postgres.js
    queue.enqueue({} as postgres.Sql, job);
    // @ts-expect-error a URL
    queue.enqueue('postgres://localhost', job);
    // @ts-expect-error nothing
    queue.enqueue(undefined, job);
    // @ts-expect-error the database comes first
    queue.enqueue(job);
  });
});

describe('the types of databases', () => {
  test('a database can begin transactions, a transaction can roll back, and a database is no transaction', () => {
    expectTypeOf(postgresJs).toExtend<Database>();
    expectTypeOf(nodePostgres).toExtend<Database>();
    expectTypeOf(pglite).toExtend<Database>();
    expectTypeOf(neonServerless).toExtend<Database>();
    expectTypeOf(bun).toExtend<Database>();

    expectTypeOf<TransactionOf<typeof postgresJs>>().toExtend<Transaction>();
    expectTypeOf<TransactionOf<typeof nodePostgres>>().toExtend<Transaction>();
    expectTypeOf<TransactionOf<typeof pglite>>().toExtend<Transaction>();
    expectTypeOf<TransactionOf<typeof neonServerless>>().toExtend<Transaction>();
    expectTypeOf<TransactionOf<typeof bun>>().toExtend<Transaction>();

    expectTypeOf(postgresJs).not.toExtend<Transaction>();
    expectTypeOf(nodePostgres).not.toExtend<Transaction>();
    expectTypeOf(pglite).not.toExtend<Transaction>();
    expectTypeOf(neonServerless).not.toExtend<Transaction>();
    expectTypeOf(bun).not.toExtend<Transaction>();
  });

  test('a function of the app may take either', () => {
    const enqueueSync = async (db: Executor) => await queue.enqueue(db, job);
    enqueueSync(postgresJs);
    postgresJs.transaction(async (tx) => await enqueueSync(tx));
    const inTransaction = async (tx: Transaction) => {
      await queue.enqueue(tx, job);
      await tx.transaction(async (inner) => await enqueueSync(inner));
    };
    nodePostgres.transaction(inTransaction);
    // @ts-expect-error not a transaction
    inTransaction(nodePostgres);
  });
});
