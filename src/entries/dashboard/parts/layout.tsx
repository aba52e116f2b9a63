import { assetPath } from '../assets/assets.ts';
import { type Child, h } from '../html.ts';
import type { Links } from '../links.ts';
import { limitsOf, schedulesOf, type Visit, workflowsOf } from '../visit.ts';
import { Ago } from './moment.tsx';
import { Notice } from './notice.tsx';
import { Foreign } from './text.tsx';

/** What is older says how old it is. */
const OLD_MS = 5_000;

interface DocumentProps {
  readonly links: Links;
  readonly title: string;
  readonly charts?: boolean;
  readonly children?: Child;
}

/** A whole page, independent of who sees it. */
export function Document({ links, title, charts = false, children }: DocumentProps) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>{title}</title>
        <link rel="icon" href={links.to(assetPath('icon.svg'))} type="image/svg+xml" />
        <link rel="stylesheet" href={links.to(assetPath('style.css'))} />
        <script defer src={links.to(assetPath('app.js'))} />
        {charts ? <script defer src={links.to(assetPath('charts.js'))} /> : null}
      </head>
      <body>{children}</body>
    </html>
  );
}

interface PageProps {
  readonly visit: Visit;
  readonly title: string;
  readonly charts?: boolean;
  /** Stands beside the title. */
  readonly aside?: Child;
  /** When a search has found what it shows. */
  readonly foundAt?: Date | undefined;
  readonly children?: Child;
}

/** A page of the dashboard, with its navigation. */
export function Page({ visit, title, charts = false, aside, foundAt, children }: PageProps) {
  const { links, settings, granted } = visit;
  return (
    <Document links={links} title={`${title} · ${settings.title}`} charts={charts}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <div id="page" class="page" data-now={visit.nowMs}>
        <header class="side">
          <a class="brand" href={links.to('/')}>
            <Mark />
            <span>{settings.title}</span>
          </a>
          <Switch links={links} name={settings.name} names={settings.names} />
          <nav aria-label="Pages">
            <ul>
              {pagesOf(visit).map(([path, name]) => (
                <li>
                  <a href={links.to(path)} aria-current={isIn(visit, path) ? 'page' : undefined}>
                    {name}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <p class="who">
            {granted.actor === undefined ? null : <Foreign text={granted.actor} />}
            <span>
              {granted.actions.size === 0 ? 'read only' : granted.whole ? 'all queues' : 'some jobs'}
            </span>
          </p>
          <aside class="live" id="live" aria-label="Live updates" hidden>
            <label for="every">Live</label>
            <select id="every">
              <option value="1">1 s</option>
              <option value="2">2 s</option>
              <option value="5">5 s</option>
              <option value="15">15 s</option>
              <option value="60">1 min</option>
              <option value="0">off</option>
            </select>
            <span class="dot" id="beat" />
            <button type="button" class="button" id="keys" aria-haspopup="dialog">
              ?<span class="unseen"> Keys</span>
            </button>
            <p class="unseen" role="status" id="said" />
          </aside>
        </header>
        <main id="main" tabindex={-1}>
          <div class="head">
            <h1>{title}</h1>
            {aside}
          </div>
          <Notice visit={visit} />
          {foundAt === undefined || visit.nowMs - foundAt.getTime() < OLD_MS ? null : (
            <p class="note">
              Searched <Ago at={foundAt} nowMs={visit.nowMs} />: an open page repeats a search for a percent
              of the time.
            </p>
          )}
          {children}
        </main>
      </div>
    </Document>
  );
}

/** A page whose rows could not be read in time. */
export function SlowPage({ visit, title }: { readonly visit: Visit; readonly title: string }) {
  return (
    <Page visit={visit} title={title}>
      <p class="notice is-bad">The database took too long. Try again in a few minutes.</p>
    </Page>
  );
}

/** Leads to the other queues, where there are several. */
interface SwitchProps {
  readonly links: Links;
  /** Of the database that the page is about. */
  readonly name: string | undefined;
  readonly names: readonly string[];
}

/** The way to the pages of other databases. */
export function Switch({ links, name: current, names }: SwitchProps) {
  if (names.length < 2) return null;
  return (
    <nav aria-label="Databases" class="switch">
      <ul>
        {names.map((name) => (
          <li>
            <a href={links.other(name)} aria-current={name === current ? 'true' : undefined}>
              {name}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function pagesOf(visit: Visit): [path: string, name: string][] {
  const { granted } = visit;
  const queues = granted.scope.own.length === 0;
  return [
    ['/', 'Overview'],
    ['/jobs', 'Jobs'],
    ['/errors', 'Errors'],
    ...(queues ? [['/queues', 'Queues'] as [string, string]] : []),
    ...(schedulesOf(visit) === undefined ? [] : [['/schedules', 'Schedules'] as [string, string]]),
    ...(granted.whole && workflowsOf(visit) !== undefined ? [['/flows', 'Flows'] as [string, string]] : []),
    ...(limitsOf(visit) === undefined ? [] : [['/limits', 'Limits'] as [string, string]]),
    ...(queues ? [['/workers', 'Workers'] as [string, string]] : []),
    ...(granted.whole ? [['/database', 'Database'] as [string, string]] : []),
  ];
}

function isIn({ path }: Visit, page: string): boolean {
  const [at = '/'] = path.split('?');
  return page === '/' ? at === '/' : at === page || at.startsWith(`${page}/`);
}

/** Three rows, the first of which is taken. */
function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
      <rect x="2" y="3" width="20" height="5" rx="2.5" class="mark-first" />
      <rect x="2" y="10" width="14" height="5" rx="2.5" class="mark-second" />
      <rect x="2" y="17" width="9" height="5" rx="2.5" class="mark-third" />
    </svg>
  );
}
