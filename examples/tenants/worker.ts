/** A worker process: it exports data and books entries. */
import { setTimeout as delay } from 'node:timers/promises';
import { desc, eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createWorker, fixedBackoff, handlersFor } from 'drizzle-queue';
import postgres from 'postgres';
import { book, exportData, queue } from './jobs.ts';
import { entries, exportRuns } from './schema.ts';

const client = postgres(process.env.DATABASE_URL ?? '', { max: 20 });
const db = drizzle({ client });
const { handle } = handlersFor<typeof db>();
const now = sql`clock_timestamp()`;

const worker = createWorker(db, {
  queue,
  handlers: [
    handle(exportData, async ({ payload: { tenant }, db, complete }) => {
      const run = { tenant, pid: process.pid, startedAt: now };
      const [started] = await db.insert(exportRuns).values(run).returning({ id: exportRuns.id });
      await delay(40);
      await db.transaction(async (tx) => {
        await tx
          .update(exportRuns)
          .set({ endedAt: now })
          .where(eq(exportRuns.id, started?.id ?? 0));
        await complete(tx);
      });
    }),
    handle(
      { ...book, backoff: fixedBackoff(100) },
      async ({ payload: { account, number, cents }, job, db, complete }) => {
        // Now and then something is in the way. Those behind it wait.
        if (number % 10 === 5 && job.attempt === 1) throw new Error('the bank does not answer');
        await db.transaction(async (tx) => {
          const [last] = await tx
            .select({ balance: entries.balance })
            .from(entries)
            .where(eq(entries.account, account))
            .orderBy(desc(entries.id))
            .limit(1);
          await tx.insert(entries).values({ account, number, cents, balance: (last?.balance ?? 0) + cents });
          await complete(tx);
        });
      },
    ),
  ],
  queues: { exports: { concurrency: 8 }, ledger: { concurrency: 8 } },
});
await worker.run();
await client.end({ timeout: 5 });
