import { bigint, text } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { type ForeignJob, from, type ImportReport, importJobs } from 'drizzle-queue/import';
import { createQueueTables } from 'drizzle-queue/schema';
import { expectTypeOf, test } from 'vitest';

const db = drizzle('postgres://nowhere');
const send = defineJob('send', { payload: unvalidated<{ orderId: number }>() });
const plain = defineJob('plain');

test('each rule makes the payload of its own definition', () => {
  const report = importJobs(db, from.pgBoss(), {
    'send-email': { job: send, payload: (data: { order: number }) => ({ orderId: data.order }) },
    plain: { job: plain, options: (job) => ({ priority: job.priority > 0 ? 1 : 2 }) },
  });
  expectTypeOf(report).resolves.toEqualTypeOf<ImportReport>();
  importJobs(db, from.graphileWorker(), {
    // @ts-expect-error a text is no number
    send: { job: send, payload: () => ({ orderId: 'one' }) },
  });
  importJobs(db, from.graphileWorker(), {
    // @ts-expect-error it has no payload
    plain: { job: plain, payload: () => ({ orderId: 1 }) },
  });
  // @ts-expect-error a rule needs a definition
  importJobs(db, from.graphileWorker(), { send: {} });
  // @ts-expect-error there is no such option
  importJobs(db, from.graphileWorker(), { send: { job: send } }, { dry: true });
});

test('a rule is told of the job, and may not say what an import cannot do', () => {
  importJobs(db, from.bullmqPostgres({ queue: 'mail' }), {
    send: {
      job: send,
      options: (job) => {
        expectTypeOf(job).toEqualTypeOf<ForeignJob>();
        return { uniqueKey: job.id, unique: 'live' };
      },
    },
  });
  importJobs(db, from.pgBoss(), {
    // @ts-expect-error a window has begun when nobody knows
    send: { job: send, options: () => ({ throttle: { key: 'a', perMs: 1 } }) },
  });
});

test('a database or a transaction is the first argument', () => {
  db.transaction(async (tx) => void (await importJobs(tx, from.pgBoss(), { send: { job: send } })));
  // @ts-expect-error no database
  importJobs({}, from.pgBoss(), { send: { job: send } });
});

test('columns of the app are values of options', () => {
  const tables = createQueueTables({
    columns: { tenantId: bigint('tenant_id', { mode: 'number' }).notNull(), note: text('note') },
  });
  const queue = createQueue({ tables });
  importJobs(db, from.pgBoss(), { send: { job: send, options: () => ({ tenantId: 7 }) } }, { queue });
  // @ts-expect-error a text is no number
  importJobs(db, from.pgBoss(), { send: { job: send, options: () => ({ tenantId: 'seven' }) } }, { queue });
});
