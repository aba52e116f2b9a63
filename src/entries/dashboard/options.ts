import type { OwnColumns } from '../../core/schema/index.ts';
import type { Database, Queue } from '../../index.ts';
import { checkObject, checkOptions, namesOf, shown } from '../../internal.ts';
import type { Authorization, DashboardAction } from './access.ts';
import type { Show } from './show.ts';

/** What a user did. */
export interface ActionDone {
  /** As `authorize` named them. */
  readonly actor: string | undefined;
  /** The name of the queue, where the dashboard shows several. */
  readonly name: string | undefined;
  readonly action: DashboardAction;
  /**
   * What it was done to: a queue, a schedule, a limit, a group, a group of errors, or a filter. Values are as
   * `show` shows them, and `hidden` where it hides them.
   */
  readonly target: Readonly<Record<string, string>>;
  /** The jobs, where it was done to jobs: of many those that it was tried with. */
  readonly ids: readonly number[];
  /** What it came to, such as `cancelled` or `3 redriven`. */
  readonly outcome: string;
  /** By this process's clock. */
  readonly at: Date;
}

/** A queue in a database. */
export interface QueueOfDashboard<TOwn extends OwnColumns = OwnColumns> {
  /** The app's own Drizzle database. The dashboard opens no connection. */
  readonly db: Database;
  /** The queue to show, from `createQueue`. */
  readonly queue: Queue<TOwn>;
}

/** The options of {@link createDashboard}: `db` and `queue`, or `queues`. */
export type DashboardOptions<TOwn extends OwnColumns = OwnColumns> = LookOptions &
  (
    | (QueueOfDashboard<TOwn> & { readonly queues?: undefined })
    | {
        /**
         * Several queues by name (letters, digits, `_` and `-`), such as those of several databases. The
         * header of each page has a switch between them; a user who may see one of them sees all names.
         */
        readonly queues: Readonly<Record<string, QueueOfDashboard<TOwn>>>;
        readonly db?: undefined;
        readonly queue?: undefined;
      }
  );

/** What a dashboard needs beside its queue. */
export interface LookOptions {
  /**
   * Returns who a request is from and what they may do. With several queues it is also given the name of the
   * queue that the request is about. Without a grant a user sees nothing. It is called for every page and
   * again for every action.
   */
  readonly authorize: (request: Request, name: string | undefined) => Authorization | Promise<Authorization>;
  /**
   * The path under which the app serves the dashboard, such as `/admin/queue`. Where a router takes it off
   * the URL, it must not be a path of the dashboard's own, such as `/jobs` or `/queues`. @default '/'
   */
  readonly basePath?: string | undefined;
  /**
   * Decides how each value is shown: returns a text, or `null` to hide it; throwing hides it too. With it
   * jobs cannot be searched by their payload, which would tell what it hides. They can be searched by unique
   * keys, groups and own columns for those values that it shows unchanged without a `job`.
   * @default everything is shown
   */
  readonly show?: Show | undefined;
  /**
   * Called with each action after it was done. If it throws, the user who did the action is told so. @default
   * a line on the console
   */
  readonly onAction?: ((done: ActionDone) => void | Promise<void>) | undefined;
  /** Further origins that may send forms, such as `https://admin.example.com`. @default none */
  readonly trustedOrigins?: readonly string[] | undefined;
  /**
   * The only hosts to answer, such as `localhost:3000`: protects a server without a login from pages whose
   * name is made to resolve to it. @default any
   */
  readonly hosts?: readonly string[] | undefined;
  /** A link to the trace of a job, of its metadata; `undefined` for none. @default none */
  readonly traceUrl?: ((metadata: Readonly<Record<string, unknown>>) => string | undefined) | undefined;
  /** The name of the app, in the title of each page. @default 'Queue' */
  readonly title?: string | undefined;
}

const OPTIONS = namesOf<DashboardOptions>({
  db: true,
  queue: true,
  queues: true,
  authorize: true,
  basePath: true,
  show: true,
  onAction: true,
  trustedOrigins: true,
  hosts: true,
  traceUrl: true,
  title: true,
});

/** The options with their defaults. */
export interface DashboardSettings extends Omit<LookOptions, 'basePath' | 'title' | 'onAction'> {
  readonly db: Database;
  readonly queue: Queue;
  /** The name of the queue among several. */
  readonly name: string | undefined;
  /** The names of all of them; empty where there is one. */
  readonly names: readonly string[];
  /** Without a slash at its end; '' at the root. */
  readonly base: string;
  readonly title: string;
  readonly onAction: (done: ActionDone) => void | Promise<void>;
}

const NAME = /^[\w-]{1,64}$/;

/** The settings for each queue. @throws TypeError naming the option that is wrong */
export function checkedOptions(options: DashboardOptions): DashboardSettings[] {
  const what = 'createDashboard';
  checkOptions(what, options, OPTIONS);
  const { db, queue, queues, authorize, basePath = '/', title = 'Queue', onAction = logAction } = options;
  const given: Readonly<Record<string, QueueOfDashboard>> =
    queues === undefined ? { '': { db, queue } as QueueOfDashboard } : checkObject(`${what}: queues`, queues);
  if (queues !== undefined && (db !== undefined || queue !== undefined))
    throw new TypeError(`${what}: queues and ${db === undefined ? 'queue' : 'db'} cannot be combined`);
  const names = queues === undefined ? [] : Object.keys(given);
  if (queues !== undefined && names.length === 0)
    throw new TypeError(`${what}: queues must have at least one queue`);
  for (const name of names) {
    if (!NAME.test(name))
      throw new TypeError(
        `${what}: a name in queues must consist of letters, digits, _ and -, got ${shown(name)}`,
      );
  }
  for (const [name, of] of Object.entries(given)) checkQueue(name === '' ? what : `${what}: ${name}`, of);
  if (typeof authorize !== 'function') {
    throw new TypeError(
      `${what}: authorize must be a function that returns 'none', 'read' or 'write' for a request; ` +
        'without it every request is refused',
    );
  }
  for (const name of ['show', 'onAction', 'traceUrl'] as const) {
    if (options[name] !== undefined && typeof options[name] !== 'function')
      throw new TypeError(`${what}: ${name} must be a function, got ${shown(options[name])}`);
  }
  for (const name of ['trustedOrigins', 'hosts'] as const) {
    const value = options[name];
    if (value !== undefined && !(Array.isArray(value) && value.every((each) => typeof each === 'string')))
      throw new TypeError(`${what}: ${name} must be an array of strings, got ${shown(value)}`);
  }
  if (typeof title !== 'string') throw new TypeError(`${what}: title must be a string, got ${shown(title)}`);
  const { show, trustedOrigins, hosts, traceUrl } = options;
  const base = checkedBase(basePath);
  return Object.entries(given).map(([name, of]) => ({
    ...{ show, trustedOrigins, hosts, traceUrl, authorize, base, title, onAction, names },
    ...{ db: of.db, queue: of.queue, name: name === '' ? undefined : name },
  }));
}

function checkQueue(what: string, { db, queue }: QueueOfDashboard): void {
  if (typeof db?.execute !== 'function' || typeof db.transaction !== 'function')
    throw new TypeError(`${what}: db must be a Drizzle database`);
  if (typeof queue?.tables !== 'object')
    throw new TypeError(`${what}: queue must be what createQueue() returns; got ${shown(queue)}`);
}

function checkedBase(basePath: string): string {
  if (typeof basePath === 'string' && /^\/([\w.~@-]+(\/[\w.~@-]+)*\/?)?$/.test(basePath))
    return basePath.replace(/\/$/, '');
  throw new TypeError(
    `createDashboard: basePath must be a plain path such as '/admin/queue', got ${shown(basePath)}`,
  );
}

function logAction({ actor, name, action, target, ids, outcome }: ActionDone): void {
  const what = [
    ...(name === undefined ? [] : [name]),
    ...Object.values(target),
    ...ids.slice(0, 10).map((id) => `#${id}`),
  ].join(' ');
  // One line, whatever a name contains.
  console.info(
    `drizzle-queue dashboard: ${JSON.stringify(`${actor ?? 'unknown user'}: ${action} ${what}: ${outcome}`)}`,
  );
}
