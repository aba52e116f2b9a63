/** A worker process: it declares the schedule, and writes the reports. */
import { and, eq, isNull, lt } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createWorker, handlersFor } from 'drizzle-queue';
import postgres from 'postgres';
import { nightlyReport, queue, reportSales } from './jobs.ts';
import { reports, sales } from './schema.ts';

const client = postgres(process.env.DATABASE_URL ?? '', { max: 5 });
const db = drizzle({ client });
const { handle } = handlersFor<typeof db>();

const worker = createWorker(db, {
  queue,
  // A report holds a connection of the pool.
  concurrency: 2,
  schedules: [nightlyReport],
  handlers: [
    handle(reportSales, async ({ job, db, complete }) => {
      const night = new Date(String(job.metadata.tick));
      // The report commits together with the end of its job: a crash leaves neither.
      await db.transaction(async (tx) => {
        await tx.insert(reports).values({ night, sales: 0, cents: 0 });
        const sold = await tx
          .update(sales)
          .set({ night })
          .where(and(isNull(sales.night), lt(sales.soldAt, night)))
          .returning({ cents: sales.cents });
        const cents = sold.reduce((sum, sale) => sum + sale.cents, 0);
        await tx.update(reports).set({ sales: sold.length, cents }).where(eq(reports.night, night));
        await complete(tx);
      });
    }),
  ],
});
await worker.run();
await client.end({ timeout: 5 });
