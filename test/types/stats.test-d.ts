import { createQueue, type QueueStats, type QueueVitals, type Vital } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { createMetricsTables, queueMetrics } from 'drizzle-queue/schema/metrics';
import { expectTypeOf, test } from 'vitest';
import { neonHttp, nodePostgres, pglite, postgresJs } from './databases.ts';

const queue = createQueue({ metrics: queueMetrics });

test('stats and vitals take the database of any driver', () => {
  expectTypeOf(queue.stats(postgresJs)).resolves.toEqualTypeOf<QueueStats>();
  expectTypeOf(queue.stats(nodePostgres, { minutes: 60 })).resolves.toEqualTypeOf<QueueStats>();
  expectTypeOf(queue.stats(pglite)).resolves.toEqualTypeOf<QueueStats>();
  expectTypeOf(queue.stats(neonHttp)).resolves.toEqualTypeOf<QueueStats>();
  expectTypeOf(queue.vitals(nodePostgres)).resolves.toEqualTypeOf<QueueVitals>();
});

declare const stats: QueueStats;

test('what may be missing has to be looked at', () => {
  // @ts-expect-error A queue without metrics has no rates.
  stats.rates.kinds;
  expectTypeOf(stats.queues[0]?.oldestDueMs).toEqualTypeOf<number | undefined>();
  expectTypeOf<Vital['severity']>().toEqualTypeOf<'ok' | 'warning' | 'error' | 'unknown'>();
});

test('metrics go into their own table', () => {
  const { queueMetrics: ofMail } = createMetricsTables({ prefix: 'mail_' });
  createQueue({ metrics: ofMail });
  expectTypeOf(ofMail.$inferSelect.wait).toEqualTypeOf<Readonly<Record<string, number>>>();
  // @ts-expect-error It is another table.
  createQueue({ metrics: queueJobs });
});
