import type { InferInsertModel, InferSelectModel } from 'drizzle-orm';
import { pgSchema } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import {
  type AttemptError,
  createQueueTables,
  queueJobs,
  type queuePauses,
  type queueResults,
  type queueWorkers,
} from 'drizzle-queue/schema';
import { describe, expectTypeOf, test } from 'vitest';

const db = drizzle.mock();

describe('the tables as Drizzle sees them', () => {
  test('rows have exact types', () => {
    expectTypeOf<InferSelectModel<typeof queueJobs>>().toEqualTypeOf<{
      id: number;
      queue: string;
      kind: string;
      payload: unknown;
      priority: number;
      runAt: Date;
      attempt: number;
      maxAttempts: number;
      fence: number;
      workerId: number | null;
      claimedAt: Date | null;
      batchId: number | null;
      blockers: number | null;
      cost: number | null;
      uniqueKey: string | null;
      waitingKey: string | null;
      groupKey: string | null;
      errors: AttemptError[];
      metadata: Record<string, unknown>;
      createdAt: Date;
      cancelReason: string | null;
      progress: unknown;
    }>();
    expectTypeOf<InferSelectModel<typeof queueResults>['state']>().toEqualTypeOf<
      'completed' | 'discarded' | 'cancelled'
    >();
    expectTypeOf<InferSelectModel<typeof queueWorkers>['queues']>().toEqualTypeOf<string[]>();
    expectTypeOf<InferSelectModel<typeof queuePauses>>().toEqualTypeOf<{ queue: string; pausedAt: Date }>();
  });

  test('columns with a default may be left out of an insert, the identity may not be set', () => {
    type Insert = InferInsertModel<typeof queueJobs>;
    expectTypeOf<{ queue: string; kind: string; payload: object; maxAttempts: number }>().toExtend<Insert>();
    expectTypeOf<Insert>().not.toHaveProperty('id');
  });

  test('a select through the builder is typed', () => {
    const rows = db
      .select({ id: queueJobs.id, runAt: queueJobs.runAt, key: queueJobs.uniqueKey })
      .from(queueJobs);
    expectTypeOf(rows).resolves.toEqualTypeOf<{ id: number; runAt: Date; key: string | null }[]>();
  });

  test('names are literal, with a prefix and in a Postgres schema', () => {
    expectTypeOf(queueJobs._.name).toEqualTypeOf<'queue_jobs'>();
    const mail = createQueueTables({ prefix: 'mail_' });
    expectTypeOf(mail.queueJobs._.name).toEqualTypeOf<'mail_jobs'>();
    expectTypeOf(mail.queueJobs._.schema).toEqualTypeOf<undefined>();
    const own = createQueueTables({ schema: pgSchema('work') });
    expectTypeOf(own.queueResults._.name).toEqualTypeOf<'queue_results'>();
    expectTypeOf(own.queueResults._.schema).toEqualTypeOf<'work'>();
    expectTypeOf<InferSelectModel<typeof own.queueJobs>['id']>().toEqualTypeOf<number>();
  });

  test('options are checked', () => {
    // @ts-expect-error prefix is a string
    createQueueTables({ prefix: 3 });
    // @ts-expect-error a schema is made by pgSchema()
    createQueueTables({ schema: 'work' });
    // @ts-expect-error unknown option
    createQueueTables({ prefx: 'mail_' });
  });
});
