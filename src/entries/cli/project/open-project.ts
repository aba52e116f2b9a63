import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Database, Queue } from '../../../index.ts';
import { LOADERS, type Loaders, type QueueConfig } from '../../config/define-config.ts';
import type { Shard } from '../../shards/index.ts';
import { Failure, misused } from '../failure.ts';
import { nearest } from '../nearest.ts';
import { complain } from '../terminal/complain.ts';
import { type Credentials, connect } from './connect.ts';
import { type DrizzleConfig, readDrizzleConfig } from './drizzle-config.ts';
import { exportedTables, USUAL_TABLES } from './exported-tables.ts';
import { findConfig } from './find-upwards.ts';
import { loadEnv } from './load-env.ts';
import { defaultOf, loadModule } from './load-module.ts';
import { queueOf } from './queue-of.ts';

/** Where to look for the database. */
export interface Whereabouts {
  readonly config?: string | undefined;
  readonly url?: string | undefined;
  readonly envFile: readonly string[];
  /** The name of one of several databases. */
  readonly shard?: string | undefined;
  /** Whether the command is about all of several databases, if none is named. */
  readonly all?: boolean;
}

/** An app's database and queue, opened for a command. */
export interface Project {
  /** Of several databases the one that was named, or the first where the command is about all. */
  readonly db: Database;
  readonly queue: Queue;
  /** Of several databases those that the command is about; `undefined` where the app has one. */
  readonly shards: Readonly<Record<string, Shard>> | undefined;
  /** What queue.config.ts says; `undefined` where there is none. */
  readonly config: QueueConfig | undefined;
  /** Loads the workers and the dashboard that fit the queue. */
  readonly load: Loaders;
  /** Where the database was found, without a password. */
  readonly source: string;
  close(): Promise<void>;
}

const LOAD: Loaders = {
  entry: () => import('../../../index.ts'),
  dashboard: () => import('../../dashboard/index.ts'),
  shards: () => import('../../shards/index.ts'),
  import: () => import('../../import/index.ts'),
};

/**
 * Finds the database: queue.config.ts (upwards from here), `--url`, drizzle.config.ts, the environment. A
 * `--url` goes before the database of either config, and their tables and handlers stay.
 *
 * @throws Failure when there is none
 */
export async function openProject(given: Whereabouts): Promise<Project> {
  const cwd = process.cwd();
  const path = given.config === undefined ? findConfig('queue', cwd) : resolve(given.config);
  if (path !== undefined && !existsSync(path))
    throw misused(`The file ${given.config} of --config does not exist`);
  const drizzleConfig = findConfig('drizzle', cwd);
  loadEnv(dirname(path ?? drizzleConfig ?? join(cwd, '.env')), given.envFile);
  if (path !== undefined) return await fromQueueConfig(path, given);
  if (given.shard !== undefined) throw misused('--shard needs a queue.config.ts with `shards`');
  const known =
    drizzleConfig === undefined ? undefined : await readTolerantly(drizzleConfig, given.url !== undefined);
  const { credentials, source } = credentialsFrom(given.url, known, drizzleConfig);
  const folder = drizzleConfig === undefined ? cwd : dirname(drizzleConfig);
  const { db, close } = await connect(folder, credentials);
  try {
    const tables = known === undefined ? USUAL_TABLES : await tablesOf(known);
    const queue = await queueOf(db, tables);
    return { db, queue, shards: undefined, config: undefined, load: LOAD, source, close };
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

async function fromQueueConfig(path: string, given: Whereabouts): Promise<Project> {
  const file = relative(process.cwd(), path) || path;
  const config: unknown = defaultOf(await loadModule(path));
  const load: unknown = Reflect.get(Object(config), LOADERS);
  if (load === undefined) {
    throw new Failure(
      `${file} must \`export default defineConfig({ db, queue, … })\`, ` +
        "with defineConfig of 'drizzle-queue/config'",
    );
  }
  // defineConfig has checked what it is, and put the loaders in.
  const [known, loaders] = [config as QueueConfig, load as Loaders];
  const { shards } = known;
  const places: readonly Shard[] = shards === undefined ? [known] : Object.values(shards);
  const closeAll = async () => {
    await Promise.all(places.map(({ db }) => closeClient(db)));
  };
  try {
    const { name, db, queue } = placeIn(known, given);
    const common = { queue, config: known, load: loaders };
    if (given.url === undefined) {
      const source = name === undefined ? file : `the shard '${name}' of ${file}`;
      const about = name === undefined ? shards : { [name]: { db, queue } };
      return { ...common, db, shards: about, source, close: closeAll };
    }
    const opened = await connect(dirname(path), given.url);
    const closeBoth = async () => {
      await Promise.all([opened.close(), closeAll()]);
    };
    const about = name === undefined ? undefined : { [name]: { db: opened.db, queue } };
    return { ...common, db: opened.db, shards: about, source: '--url', close: closeBoth };
  } catch (error) {
    await closeAll().catch(() => undefined);
    throw error;
  }
}

/** The database that a command is about; without a name it is one of one, or the first of all. */
function placeIn(config: QueueConfig, { shard, url, all }: Whereabouts): Shard & { readonly name?: string } {
  if (config.shards === undefined) {
    if (shard === undefined) return config;
    throw misused('--shard names one of several databases, and queue.config.ts has one');
  }
  const names = Object.keys(config.shards);
  const [first = ''] = names;
  if (shard === undefined && (all !== true || url !== undefined)) {
    const what = url === undefined ? 'which one' : 'whose queue is at --url';
    throw misused(`queue.config.ts has several databases; say ${what}: --shard ${names.join(', --shard ')}`);
  }
  const name = shard ?? first;
  const found = Object.hasOwn(config.shards, name) ? config.shards[name] : undefined;
  if (found !== undefined) return shard === undefined ? found : { ...found, name: shard };
  const close = nearest(name, names);
  throw misused(
    `queue.config.ts has no shard '${shard}'` +
      (close === undefined ? `; there are ${names.join(', ')}` : ` (did you mean ${close}?)`),
  );
}

/** Where an address was given, a config that cannot be read does not make the command fail. */
async function readTolerantly(path: string, hasUrl: boolean): Promise<DrizzleConfig | undefined> {
  try {
    return await readDrizzleConfig(path);
  } catch (error) {
    if (!hasUrl && !process.env.DATABASE_URL) throw error;
    complain(
      `${relative(process.cwd(), path)} cannot be read, so the default tables are used (${firstLine(error)})`,
    );
    return undefined;
  }
}

async function tablesOf({ schemaFiles }: DrizzleConfig) {
  try {
    return await exportedTables(schemaFiles);
  } catch (error) {
    complain(
      `The schema of drizzle.config cannot be read, so the default tables are used (${firstLine(error)})`,
    );
    return USUAL_TABLES;
  }
}

function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split('\n')[0] ?? '';
}

function credentialsFrom(
  url: string | undefined,
  known: DrizzleConfig | undefined,
  drizzleConfig: string | undefined,
): { readonly credentials: Credentials; readonly source: string } {
  const { DATABASE_URL, PGHOST, PGDATABASE } = process.env;
  if (url !== undefined) return { credentials: url, source: '--url' };
  if (known?.credentials !== undefined && drizzleConfig !== undefined)
    return {
      credentials: known.credentials,
      source: relative(process.cwd(), drizzleConfig) || drizzleConfig,
    };
  if (DATABASE_URL) return { credentials: DATABASE_URL, source: 'DATABASE_URL' };
  if (PGHOST || PGDATABASE) return { credentials: undefined, source: 'PGHOST and the other PG… variables' };
  throw new Failure(
    'No database found: there is no queue.config.ts and no drizzle.config.ts with dbCredentials here ' +
      'or above, and DATABASE_URL is not set. Pass --url, or start with `npx drizzle-queue init`',
  );
}

/** Ends the client or pool below a Drizzle database, so that the process can end. */
async function closeClient(db: Database): Promise<void> {
  const client: unknown = Reflect.get(db, '$client');
  for (const name of ['end', 'close']) {
    const close: unknown = Reflect.get(Object(client), name);
    if (typeof close !== 'function') continue;
    // A postgres.js client is a function. Without a timeout it waits for statements that are no longer
    // needed.
    await Reflect.apply(close, client, typeof client === 'function' ? [{ timeout: 1 }] : []);
    return;
  }
}
