import { pgSchema } from 'drizzle-orm/pg-core';
import { createQueue, type Queue } from 'drizzle-queue';
import { createQueueTables, queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { describe, expectTypeOf, test } from 'vitest';

describe('createQueue', () => {
  test('is over the default tables, or over others', () => {
    expectTypeOf(createQueue()).toEqualTypeOf<Queue>();
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
});
