import type { OwnColumns } from '../../core/schema/index.ts';
import type { Database, Handler, JobDefinition, Queue, WorkerOptions } from '../../index.ts';
import type { DashboardOptions } from '../dashboard/index.ts';
import type { Shard, WorkersOptions } from '../shards/index.ts';

/** What `queue.config.ts` exports by default, for the command: `db` and `queue`, or `shards`. */
export type QueueConfig<TDb extends Database = Database, TOwn extends OwnColumns = OwnColumns> = AppConfig<
  TDb,
  TOwn
> &
  (OneDatabase<TDb, TOwn> | SeveralDatabases<TDb, TOwn>);

/** The database of an app that has one. */
export interface OneDatabase<TDb extends Database, TOwn extends OwnColumns> {
  /** The app's own Drizzle database. The command closes its client (`db.$client`) at its end. */
  readonly db: TDb;
  /** The app's own queue, from `createQueue`. */
  readonly queue: Queue<TOwn>;
  readonly shards?: undefined;
  /** Options of the worker of `drizzle-queue work`. @default those of `createWorker` */
  readonly worker?: Omit<WorkerOptions<TDb, TOwn>, 'queue' | 'handlers'> | undefined;
}

/** The databases of an app that has several. */
export interface SeveralDatabases<TDb extends Database, TOwn extends OwnColumns> {
  /**
   * The app's own databases and queues by name, as `drizzle-queue/shards` takes them. `work` and `dashboard`
   * are about all of them, or about the one of `--shard`; the other commands need `--shard`.
   */
  readonly shards: Readonly<Record<string, Shard<TDb, TOwn>>>;
  readonly db?: undefined;
  readonly queue?: undefined;
  /** Options of the workers of `drizzle-queue work`. @default those of `createWorkers` */
  readonly worker?: Omit<WorkersOptions<string, TDb, TOwn>, 'handlers'> | undefined;
}

/** What a config has beside its databases. */
export interface AppConfig<TDb extends Database, TOwn extends OwnColumns> {
  /** The definitions that `drizzle-queue enqueue` knows, beside those of the handlers. @default none */
  readonly jobs?: readonly JobDefinition[] | undefined;
  /**
   * What `drizzle-queue work` runs. Given as a function it is called by that command only, so that the others
   * load nothing of the handlers: `async () => (await import('./src/handlers.ts')).handlers`.
   * @default none: `work` says that there is nothing to do
   */
  readonly handlers?:
    | readonly Handler<TDb, TOwn['select']>[]
    | (() => HandlersOf<TDb, TOwn> | Promise<HandlersOf<TDb, TOwn>>)
    | undefined;
  /** Options of `drizzle-queue dashboard`. @default those of `createDashboard` */
  readonly dashboard?: Pick<DashboardOptions<TOwn>, 'show' | 'traceUrl' | 'title'> | undefined;
}

type HandlersOf<TDb extends Database, TOwn extends OwnColumns> = readonly Handler<TDb, TOwn['select']>[];

/** The key of {@link Loaders} in what `defineConfig` returns; the same in all copies of this package. */
export const LOADERS: unique symbol = Symbol.for('drizzle-queue.config.loaders');

/**
 * Loads the workers, the dashboard and the importer of the copy of this package that the config has imported:
 * a queue knows its limits by the copy that made it, and a CommonJS app has another than the command.
 */
export interface Loaders {
  entry(): Promise<Pick<typeof import('../../index.ts'), 'createWorker' | 'drain'>>;
  dashboard(): Promise<Pick<typeof import('../dashboard/index.ts'), 'createDashboard' | 'toNode'>>;
  shards(): Promise<Pick<typeof import('../shards/index.ts'), 'createWorkers'>>;
  import(): Promise<Pick<typeof import('../import/index.ts'), 'from' | 'importJobs'>>;
}

const loaders: Loaders = {
  entry: () => import('../../index.ts'),
  dashboard: () => import('../dashboard/index.ts'),
  shards: () => import('../shards/index.ts'),
  import: () => import('../import/index.ts'),
};

/**
 * Types the default export of `queue.config.ts`, by which the command `drizzle-queue` finds the app's
 * database, queue and handlers.
 *
 * ```ts
 * // queue.config.ts
 * import { defineConfig } from 'drizzle-queue/config';
 * import { db } from './src/db/index.ts';
 * import { queue, sendReceipt } from './src/jobs.ts';
 *
 * export default defineConfig({
 *   db,
 *   queue,
 *   jobs: [sendReceipt],
 *   handlers: async () => (await import('./src/handlers.ts')).handlers,
 * });
 * ```
 *
 * @throws TypeError naming the option that is wrong
 */
export function defineConfig<TDb extends Database, TOwn extends OwnColumns>(
  config: QueueConfig<TDb, TOwn>,
): QueueConfig<TDb, TOwn> {
  const what = 'defineConfig';
  if (typeof config !== 'object' || config === null) throw new TypeError(`${what} takes an object`);
  for (const name of Object.keys(config)) {
    if (!NAMES.has(name)) throw new TypeError(`${what}: unknown option '${name}'`);
  }
  const { db, queue, shards, jobs, handlers, dashboard } = config;
  if (shards === undefined) checkPlace(what, { db, queue });
  else if (db !== undefined || queue !== undefined)
    throw new TypeError(`${what}: shards and ${db === undefined ? 'queue' : 'db'} cannot be combined`);
  else checkShards(what, shards);
  if (jobs !== undefined && !Array.isArray(jobs)) throw new TypeError(`${what}: jobs must be an array`);
  if (handlers !== undefined && !Array.isArray(handlers) && typeof handlers !== 'function')
    throw new TypeError(`${what}: handlers must be an array, or a function that returns one`);
  if (dashboard !== undefined) checkDashboard(`${what}: dashboard`, dashboard);
  return Object.assign({ ...config }, { [LOADERS]: loaders });
}

function checkPlace(what: string, { db, queue }: Partial<Shard>): void {
  if (typeof db?.execute !== 'function') throw new TypeError(`${what}: db must be a Drizzle database`);
  if (typeof queue?.tables !== 'object')
    throw new TypeError(`${what}: queue must be what createQueue() returns`);
}

function checkShards(what: string, shards: Readonly<Record<string, Partial<Shard> | undefined>>): void {
  const all = typeof shards === 'object' && shards !== null ? Object.entries(shards) : [];
  if (all.length === 0) throw new TypeError(`${what}: shards must be an object with at least one shard`);
  for (const [name, shard] of all) checkPlace(`${what}: shard '${name}'`, shard ?? {});
}

/** `show` guards secrets, so a mistake in these is told before anything is printed. */
function checkDashboard(what: string, options: NonNullable<QueueConfig['dashboard']>): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${what} must be an object`);
  for (const [name, value] of Object.entries(options)) {
    const type = DASHBOARD.get(name);
    if (type === undefined) throw new TypeError(`${what}: unknown option '${name}'`);
    if (value !== undefined && typeof value !== type)
      throw new TypeError(`${what}.${name} must be a ${type}, got a value of type ${typeof value}`);
  }
}

const DASHBOARD: ReadonlyMap<string, string> = new Map(
  Object.entries({
    show: 'function',
    traceUrl: 'function',
    title: 'string',
  } satisfies Record<keyof NonNullable<QueueConfig['dashboard']>, string>),
);

const NAMES: ReadonlySet<string> = new Set([
  'db',
  'queue',
  'shards',
  'jobs',
  'handlers',
  'worker',
  'dashboard',
] satisfies (keyof QueueConfig)[]);
