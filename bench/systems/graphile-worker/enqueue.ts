import { sql } from 'drizzle-orm';
import { Logger, makeWorkerUtils } from 'graphile-worker';
import type { OpenEnqueuer } from '../../child/enqueuer.ts';
import { connectApp, newOrder, orders } from '../../child/orders.ts';

/** Its own API where there is one; within the app's transaction only its SQL function. */
export const openEnqueuer: OpenEnqueuer = async ({ url, connections }) => {
  const utils = await makeWorkerUtils({
    connectionString: url,
    maxPoolSize: connections,
    logger: new Logger(() => () => undefined),
  });
  const { db, close } = connectApp(url, connections);
  const add = (n: number) =>
    sql`select graphile_worker.add_job('bench', ${JSON.stringify({ n })}::text::json)`;
  return {
    async enqueue(n) {
      await utils.addJob('bench', { n });
    },
    async order(n) {
      await db.transaction(async (tx) => {
        await tx.insert(orders).values(newOrder);
        await tx.execute(add(n));
      });
    },
    async late(n, openMs) {
      await db.transaction(async (tx) => {
        await tx.execute(add(n));
        await new Promise((resolve) => setTimeout(resolve, openMs));
      });
    },
    async many(from, count) {
      await utils.addJobs(
        Array.from({ length: count }, (_, index) => ({ identifier: 'bench', payload: { n: from + index } })),
      );
    },
    async close() {
      await utils.release();
      await close();
    },
  };
};
