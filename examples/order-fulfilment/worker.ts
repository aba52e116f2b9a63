/** A process that fulfils orders, until SIGINT or SIGTERM. */
import { eq } from 'drizzle-orm';
import { createWorker, handlersFor, isFinal, NonRetryableError } from 'drizzle-queue';
import { linkWith } from './approvals.ts';
import { connect } from './database.ts';
import { approval, fulfil, queue } from './jobs.ts';
import { orders, stockMoves } from './schema.ts';
import { callService, mailClerk } from './services.ts';

/** Above it a clerk decides. */
const EXPENSIVE_CENTS = 50_000;

const db = connect();
const { handle } = handlersFor<typeof db, typeof queue>();

const fulfilment = handle(fulfil, async ({ payload: { orderId, cents }, step, complete }) => {
  const service = (what: 'charge' | 'refund' | 'parcel', key: string) => callService(db, what, orderId, key);
  try {
    // At least once: the key is the same in all attempts, so the provider charges once.
    await step.run(
      'charge',
      { undo: (_, { idempotencyKey }) => service('refund', idempotencyKey) },
      ({ idempotencyKey }) => service('charge', idempotencyKey),
    );
    // Exactly once: the move commits with the record of the step.
    await step.transaction(
      'reserve',
      { undo: (tx) => tx.insert(stockMoves).values({ orderId, pieces: 1 }) },
      async (tx) => {
        await tx.insert(stockMoves).values({ orderId, pieces: -1 });
      },
    );
    if (cents > EXPENSIVE_CENTS) {
      // The same in all attempts, so a repeated mail has the same link.
      const token = await step.token(approval);
      await step.run('ask', () => mailClerk(db, orderId, linkWith(token)));
      // Days may pass here. The job holds no slot and no connection meanwhile.
      const { ok } = await step.waitForSignal(approval);
      if (!ok) throw new NonRetryableError('The clerk has refused it');
    }
    // Time to change one's mind.
    await step.sleep('cooling off', 50);
    // Bounded: an order that cannot be shipped is taken back, and not left as it is by the last attempt.
    await step.run('ship', { attempts: 10 }, ({ idempotencyKey }) => service('parcel', idempotencyKey));
    await db.transaction(async (tx) => {
      await tx.update(orders).set({ status: 'shipped' }).where(eq(orders.id, orderId));
      await complete(tx, 'shipped');
    });
  } catch (error) {
    if (!isFinal(error)) throw error;
    await step.undoAll(error);
    await db.transaction(async (tx) => {
      await tx.update(orders).set({ status: 'refunded' }).where(eq(orders.id, orderId));
      await complete(tx, 'refunded');
    });
  }
});

const worker = createWorker(db, { queue, handlers: [fulfilment], concurrency: 20, log: false });
// Its peers are killed all the time, and some of its statements with them.
worker.on('error', () => {});
worker.on('started', () => process.send?.('ready'));
await worker.run();
await db.$client.end({ timeout: 5 });
