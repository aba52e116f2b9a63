'use server';

import { redirect } from 'next/navigation';
import { createChat, renameChat } from '@/lib/chats';
import { currentUser } from '@/lib/user';

export async function startChat(form: FormData): Promise<void> {
  const text = String(form.get('text') ?? '').trim();
  if (text === '') return;
  const id = await createChat(await currentUser(), text);
  redirect(`/chats/${id}`);
}

export async function suggestAnother(chatId: string): Promise<void> {
  await renameChat(chatId, await currentUser());
  redirect(`/chats/${chatId}`);
}
