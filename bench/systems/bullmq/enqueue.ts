import { createPostgresBackend, Queue } from 'bullmq';
import type { OpenEnqueuer } from '../../child/enqueuer.ts';

/** `add`. It takes no transaction of the app: a job is there whether the order is or not. */
export const openEnqueuer: OpenEnqueuer = async ({ url, connections }) => {
  const connection = { connectionString: url, max: connections };
  const queue = new Queue('bench', { connection }, createPostgresBackend);
  await queue.waitUntilReady();
  return {
    async enqueue(n) {
      await queue.add('bench', { n });
    },
    async many(from, count) {
      await queue.addBulk(
        Array.from({ length: count }, (_, index) => ({ name: 'bench', data: { n: from + index } })),
      );
    },
    close: () => queue.close(),
  };
};
