import { sql } from 'drizzle-orm';
import { fromDrizzle, PgBoss } from 'pg-boss';
import type { OpenEnqueuer } from '../../child/enqueuer.ts';
import { connectApp, newOrder, orders } from '../../child/orders.ts';

/** `send`, and within the app's transaction `send` with its adapter for Drizzle. */
export const openEnqueuer: OpenEnqueuer = async ({ url, connections }) => {
  const boss = new PgBoss({
    connectionString: url,
    max: connections,
    // Where more is asked of it than it can send, the rest waits, as with the others.
    connectionTimeoutMillis: 60_000,
    supervise: false,
    schedule: false,
  });
  boss.on('error', (error) => console.error('pg-boss:', error));
  await boss.start();
  const { db, close } = connectApp(url, connections);
  return {
    async enqueue(n) {
      await boss.send('bench', { n });
    },
    async order(n) {
      await db.transaction(async (tx) => {
        await tx.insert(orders).values(newOrder);
        await boss.send('bench', { n }, { db: fromDrizzle(tx, sql) });
      });
    },
    async late(n, openMs) {
      await db.transaction(async (tx) => {
        await boss.send('bench', { n }, { db: fromDrizzle(tx, sql) });
        await new Promise((resolve) => setTimeout(resolve, openMs));
      });
    },
    async many(from, count) {
      await boss.insert(
        'bench',
        Array.from({ length: count }, (_, index) => ({ data: { n: from + index } })),
      );
    },
    async close() {
      await boss.stop({ graceful: false, close: true });
      await close();
    },
  };
};
