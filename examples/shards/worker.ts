/** A worker process for all databases: it writes invoices, each into the database of its order. */
import { handlersFor } from 'drizzle-queue';
import { createWorkers } from 'drizzle-queue/shards';
import { invoices } from './schema.ts';
import { closeShards, openShards, type Shards, writeInvoice } from './shards.ts';

const shards = openShards((process.env.DATABASE_URLS ?? '').split(' '));
const { handle } = handlersFor<Shards['eu1']['db']>();

const workers = createWorkers(shards, {
  handlers: [
    handle(writeInvoice, async ({ payload: { tenant, orderId }, db, complete }) => {
      await db.transaction(async (tx) => {
        await tx.insert(invoices).values({ tenant, orderId });
        await complete(tx);
      });
    }),
  ],
});
// While a database is down, there is one for each statement that fails.
workers.on('error', ({ shard }) => process.send?.({ failing: shard }));
await workers.run();
await closeShards(shards);
