import { h } from '../html.ts';
import type { Links } from '../links.ts';
import type { DashboardSettings } from '../options.ts';
import { Document, Switch } from '../parts/layout.tsx';

interface RefusedProps {
  readonly links: Links;
  readonly title: string;
  readonly text: string;
  /** Whether there is a page to go back to. */
  readonly home?: boolean;
  /** Where the user may know of the other databases: this one may be down, and those not. */
  readonly databases?: Pick<DashboardSettings, 'name' | 'names'> | undefined;
}

/** A page for a user who may not see what they asked for, or asked for something that does not exist. */
export function refusedPage({ links, title, text, home = false, databases }: RefusedProps) {
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
        {databases === undefined ? null : <Switch links={links} {...databases} />}
      </main>
    </Document>
  );
}
