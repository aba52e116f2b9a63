import { notFound } from 'next/navigation';
import { Suspense } from 'react';
import { suggestAnother } from '@/app/actions';
import { findChat, firstMessage } from '@/lib/chats';
import { currentUser } from '@/lib/user';
import { Title } from './title';

export default async function ChatPage({ params }: { params: Promise<{ id: string }> }) {
  const { id } = await params;
  const chat = await findChat(id, await currentUser());
  if (chat === undefined) notFound();
  return (
    <main>
      <h1>
        {/* The page is there at once; the title follows in the same response when the job has ended. */}
        <Suspense fallback={<i>New chat</i>}>
          <Title chat={chat} />
        </Suspense>
      </h1>
      <p>{await firstMessage(id)}</p>
      <form action={suggestAnother.bind(null, id)}>
        <button type="submit">Another title</button>
      </form>
    </main>
  );
}
