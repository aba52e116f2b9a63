import { JobGoneError, WaitTimeoutError } from 'drizzle-queue';
import type { Chat } from '@/lib/chats';
import { db } from '@/lib/database';
import { generateTitle, queue } from '@/lib/jobs';

/** How long the response stays open for a title; a later look at the page finds it in the chat. */
const PATIENCE_MS = 20_000;

/** The title of a chat, as soon as there is one. */
export async function Title({ chat }: { chat: Chat }) {
  return <span>{chat.title ?? (await titleOf(chat))}</span>;
}

async function titleOf({ titleJobId }: Chat): Promise<string> {
  if (titleJobId === null) return 'Untitled';
  try {
    const job = await queue.waitFor(db, generateTitle, titleJobId, { timeoutMs: PATIENCE_MS });
    return job.state === 'completed' ? job.output.title : 'Untitled';
  } catch (error) {
    if (error instanceof WaitTimeoutError || error instanceof JobGoneError) return 'Untitled';
    throw error;
  }
}
