import { sql } from 'drizzle-orm';
import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { migrateDatabase } from '../../test/support/databases.ts';
import type { Design } from './design.ts';

const queue = createQueue();
const job = defineJob('bench', { queue: 'bench' });

/** drizzle-queue: one worker, with as many jobs at a time as the others have consumers. */
export const engine: Design = {
  name: 'drizzle-queue',
  create: (_, url) => migrateDatabase(url),
  add: (db, count) =>
    db.execute(sql`
      insert into queue_jobs (queue, kind, payload, max_attempts)
      select 'bench', 'bench', '{}', 20 from generate_series(1, ${count}::int)`),
  clear: (db) => db.execute(sql`truncate queue_jobs, queue_results`),
  async start({ connections, pool, work, count }) {
    const worker = createWorker(pool, {
      log: false,
      queue,
      handlers: [handle(job, work)],
      queues: { bench: { concurrency: connections.length } },
    });
    worker.on('completed', () => count('done'));
    worker.on('idle', () => count('empty'));
    await worker.start();
    return () => worker.stop();
  },
};
