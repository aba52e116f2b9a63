/** A process that sends letters, and reports at the end, until SIGINT or SIGTERM. */
import { createWorker, fail, handlersFor, NonRetryableError } from 'drizzle-queue';
import { connect } from './database.ts';
import { queue, reportMailing, sendLetter } from './jobs.ts';
import { sendAll } from './provider.ts';
import { letters, reports } from './schema.ts';

const db = connect();
const { handle, handleBatch } = handlersFor<typeof db, typeof queue>();

// One call of the provider and one transaction take a hundred letters.
const sending = handleBatch(sendLetter, { maxSize: 100 }, async (jobs, { complete }) => {
  // At least once: the key is the same in all attempts, so the provider sends a letter once.
  const accepted = await sendAll(
    jobs.map(({ payload, job }) => ({ to: payload.email, idempotencyKey: `letter-${job.id}` })),
  );
  const sent = jobs.filter((_, at) => accepted[at]).map(({ payload }) => payload);
  // Exactly once: the rows commit with the ends of the jobs.
  await db.transaction(async (tx) => {
    if (sent.length > 0) await tx.insert(letters).values(sent);
    await complete(
      tx,
      jobs.map((_, at) =>
        accepted[at] ? undefined : fail(new NonRetryableError('There is no such mailbox')),
      ),
    );
  });
});

const reporting = handle(reportMailing, async ({ payload: { campaign }, step, complete }) => {
  const { total, completed, failed } = await step.parentCounts();
  await db.transaction(async (tx) => {
    await tx.insert(reports).values({ campaign, total, sent: completed, failed });
    await complete(tx);
  });
});

const worker = createWorker(db, {
  queue,
  handlers: [sending, reporting],
  queues: { letters: { concurrency: 5 }, default: { concurrency: 5 } },
  log: false,
});
// Its peer is killed in the middle.
worker.on('error', () => {});
worker.on('started', () => process.send?.('ready'));
await worker.run();
await db.$client.end({ timeout: 5 });
