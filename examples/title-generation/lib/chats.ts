import { and, asc, desc, eq } from 'drizzle-orm';
import { db } from './database';
import { generateTitle, queue } from './jobs';
import { chats, messages } from './schema';

export type Chat = typeof chats.$inferSelect;

/** Starts a chat. The job that names it commits with it: no chat stays without, and none is named that was rolled back. */
export async function createChat(userId: string, text: string): Promise<string> {
  return await db.transaction(async (tx) => {
    const [chat] = await tx.insert(chats).values({ userId }).returning();
    if (chat === undefined) throw new Error('The insert returned no chat');
    await tx.insert(messages).values({ chatId: chat.id, text });
    const { id } = await queue.enqueue(
      tx,
      generateTitle,
      { chatId: chat.id, userId },
      { uniqueKey: chat.id },
    );
    await tx.update(chats).set({ titleJobId: id }).where(eq(chats.id, chat.id));
    return chat.id;
  });
}

/** Has a chat named anew. While a title is being made, this is the same job: the model is asked once, however often one clicks. */
export async function renameChat(id: string, userId: string): Promise<void> {
  await db.transaction(async (tx) => {
    const job = await queue.enqueue(tx, generateTitle, { chatId: id, userId }, { uniqueKey: id });
    const renamed = await tx
      .update(chats)
      // A duplicate may end before this: then its title is there to stay.
      .set({ titleJobId: job.id, ...(job.duplicate ? {} : { title: null }) })
      .where(and(eq(chats.id, id), eq(chats.userId, userId)))
      .returning({ id: chats.id });
    // Whose chat it is not: the job goes back with the transaction.
    if (renamed.length === 0) throw new Error('There is no such chat');
  });
}

export async function findChat(id: string, userId: string): Promise<Chat | undefined> {
  if (!/^[\da-f-]{36}$/.test(id)) return undefined;
  const [chat] = await db
    .select()
    .from(chats)
    .where(and(eq(chats.id, id), eq(chats.userId, userId)));
  return chat;
}

export async function listChats(userId: string): Promise<Chat[]> {
  return await db
    .select()
    .from(chats)
    .where(eq(chats.userId, userId))
    .orderBy(desc(chats.startedAt))
    .limit(20);
}

export async function firstMessage(chatId: string): Promise<string | undefined> {
  const [message] = await db
    .select({ text: messages.text })
    .from(messages)
    .where(eq(messages.chatId, chatId))
    .orderBy(asc(messages.id))
    .limit(1);
  return message?.text;
}
