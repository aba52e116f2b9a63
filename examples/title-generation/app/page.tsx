import Link from 'next/link';
import { listChats } from '@/lib/chats';
import { currentUser } from '@/lib/user';
import { startChat } from './actions';

export default async function ChatsPage() {
  const chats = await listChats(await currentUser());
  return (
    <main>
      <form action={startChat}>
        <input name="text" aria-label="Message" placeholder="What is on your mind?" required />
        <button type="submit">Send</button>
      </form>
      <ul>
        {chats.map(({ id, title }) => (
          <li key={id}>
            <Link href={`/chats/${id}`}>{title ?? 'New chat'}</Link>
          </li>
        ))}
      </ul>
    </main>
  );
}
