import type { Links } from '../links.ts';
import { Document } from '../parts/layout.tsx';

interface RefusedProps {
  readonly links: Links;
  readonly title: string;
  readonly text: string;
  /** Whether there is a page to go back to. */
  readonly home?: boolean;
}

/** A page for a user who may not see what they asked for, or asked for something that does not exist. */
export function refusedPage({ links, title, text, home = false }: RefusedProps) {
  return (
    <Document links={links} title={title}>
      <main class="refused card">
        <h1>{title}</h1>
        <p>{text}</p>
        {home ? (
          <p>
            <a href={links.to('/')}>Overview</a>
          </p>
        ) : null}
      </main>
    </Document>
  );
}
