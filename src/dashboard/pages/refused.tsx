import type { Links } from '../links.ts';
import { Document } from '../parts/layout.tsx';

interface RefusedProps {
  readonly links: Links;
  readonly title: string;
  readonly text: string;
  readonly code?: string;
  /** Whether there is a page to go back to. */
  readonly home?: boolean;
}

/** A page for who may not see what they asked for, or asked for what is not there. */
export function refusedPage({ links, title, text, code, home = false }: RefusedProps) {
  return (
    <Document links={links} title={title}>
      <main class="refused card">
        <h1>{title}</h1>
        <p>{text}</p>
        {code === undefined ? null : (
          <pre class="code" tabindex={0}>
            <code>{code}</code>
          </pre>
        )}
        {home ? (
          <p>
            <a href={links.to('/')}>Overview</a>
          </p>
        ) : null}
      </main>
    </Document>
  );
}

/** What to write, for whoever sees the dashboard refuse everybody. */
export const AUTHORIZE = `createDashboard({
  db,
  queue,
  authorize: async (request) => {
    const user = await userOf(request); // your app's own session
    if (user === undefined) return new Response(null, { status: 303, headers: { location: '/login' } });
    return user.isAdmin ? { actor: user.name, can: 'write' } : 'none';
  },
});`;
