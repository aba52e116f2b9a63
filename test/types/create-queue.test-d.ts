import { pgSchema } from 'drizzle-orm/pg-core';
import { createQueue, createWorker, defineJob, handle, type Queue, type Transaction } from 'drizzle-queue';
import { createQueueTables, queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { describe, expectTypeOf, test } from 'vitest';
import { postgresJs as db } from './databases.ts';

declare const tx: Transaction;

describe('createQueue', () => {
  test('is over the default tables, or over others', () => {
    expectTypeOf(createQueue()).toExtend<Queue>();
    createQueue({});
    createQueue({ tables: undefined });
    createQueue({ tables: { queueJobs, queueResults, queueWorkers, queuePauses } });
  });

  test('takes tables of any prefix', () => {
    const mail = createQueueTables({ prefix: 'mail_' });
    expectTypeOf(mail.queueJobs._.name).toEqualTypeOf<'mail_jobs'>();
    expectTypeOf(mail.queueResults._.name).toEqualTypeOf<'mail_results'>();
    expectTypeOf(mail.queueWorkers._.name).toEqualTypeOf<'mail_workers'>();
    expectTypeOf(mail.queuePauses._.name).toEqualTypeOf<'mail_pauses'>();
    createQueue({ tables: mail });
    createQueue({ tables: createQueueTables() });
    const prefix = 'a_' as string;
    createQueue({ tables: createQueueTables({ prefix }) });
  });

  test('takes tables in any Postgres schema', () => {
    const own = createQueueTables({ schema: pgSchema('work') });
    expectTypeOf(own.queueJobs._.schema).toEqualTypeOf<'work'>();
    createQueue({ tables: own });
    createQueue({ tables: createQueueTables({ schema: pgSchema('work'), prefix: 'mail_' }) });
    // As destructured to top-level exports.
    const { queueJobs, queueResults, queueWorkers, queuePauses } = own;
    createQueue({ tables: { queueJobs, queueResults, queueWorkers, queuePauses } });
  });

  test('takes all four tables, each in its place', () => {
    // @ts-expect-error three are missing
    createQueue({ tables: { queueJobs } });
    // @ts-expect-error results in the place of jobs
    createQueue({ tables: { queueJobs: queueResults, queueResults, queueWorkers, queuePauses } });
    // @ts-expect-error unknown option
    createQueue({ prefix: 'mail_' });
    // @ts-expect-error it holds no connection
    createQueue({ db: {} });
  });

  test('may require a transaction for an enqueue, and for nothing else', () => {
    const strict = createQueue({ requireTransaction: true });
    const job = defineJob('job');
    strict.enqueue(tx, job);
    strict.enqueueMany(tx, job, []);
    // @ts-expect-error a plain db
    strict.enqueue(db, job);
    // @ts-expect-error a plain db
    strict.enqueueMany(db, job, []);
    // @ts-expect-error a plain db
    strict.enqueueFrom(db, job, db.select().from(queueJobs));
    strict.list(db, { job });
    strict.run(db, job);
    createWorker(db, { queue: strict, handlers: [handle(job, () => {})] });
    createQueue({ requireTransaction: false }).enqueue(db, job);
    // As configured at run time: whoever has a transaction is right in any case.
    const configured = createQueue({ requireTransaction: Math.random() > 0.5 });
    configured.enqueue(tx, job);
    // @ts-expect-error it may be required
    configured.enqueue(db, job);
  });
});
