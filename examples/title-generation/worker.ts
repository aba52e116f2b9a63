/** A process beside the app that asks the model for titles, until SIGINT or SIGTERM. Start as many as you like. */
import { eq } from 'drizzle-orm';
import { cancel, createWorker, handlersFor, snooze } from 'drizzle-queue';
import { firstMessage } from './lib/chats';
import { client, db } from './lib/database';
import { generateTitle, queue } from './lib/jobs';
import { RateLimitedError, suggestTitle } from './lib/llm';
import { chats } from './lib/schema';

const { handle } = handlersFor<typeof db>();

const titles = handle(generateTitle, async ({ payload: { chatId, userId }, signal, db, complete }) => {
  const text = await firstMessage(chatId);
  if (text === undefined) return cancel('The chat was deleted');
  try {
    const title = await suggestTitle(text, userId, signal);
    // One commit for both: the chat has its title, and the job is done.
    await db.transaction(async (tx) => {
      await tx.update(chats).set({ title }).where(eq(chats.id, chatId));
      await complete(tx, { title });
    });
  } catch (error) {
    // No failure, so no attempt is spent. Until then the user's other titles have their turn.
    if (error instanceof RateLimitedError) return snooze(error.retryAfterMs);
    throw error;
  }
});

// Not `await worker.run()` at the top: this file is CommonJS where package.json does not say "module".
async function main(): Promise<void> {
  const worker = createWorker(db, { queue, handlers: [titles], queues: { llm: { concurrency: 10 } } });
  await worker.run();
  await client.end({ timeout: 5 });
}

main();
