import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { changeOwner, type PostgresVersion, prepareBinaries } from './postgres-binaries.ts';
import { serverUser } from './server-user.ts';
import { Supervisor } from './supervisor.ts';

/** Names and values as in `postgresql.conf`. */
export type PostgresSettings = Readonly<Record<string, string | number | boolean>>;

/** What kind of server to start. */
export interface PostgresOptions {
  /** The major version; 18 unless given. */
  readonly version?: PostgresVersion;
  /** Added to, or in place of, those that suit tests (see `testSettings`). */
  readonly settings?: PostgresSettings;
  /** Fills the empty data directory, in place of `initdb`: with a copy of another server's. */
  readonly fillData?: (data: string) => Promise<void>;
}

/** A PostgreSQL server that exists for this process only. */
export interface PostgresServer {
  /** The URL of its database `postgres`, with a superuser's name and no password. */
  readonly url: string;
  readonly port: number;
  readonly version: PostgresVersion;
  /** The temporary folder with everything that the server has written; its data directory is `data` in there. */
  readonly directory: string;
  /**
   * Ends the server as a crash would, all connections included. The data stays, except what was committed in the
   * last moment, which is lost unless the setting `synchronous_commit` is on.
   */
  crash(): Promise<void>;
  /** Starts the server again with the same port and data; when it runs, after an orderly shutdown. */
  restart(): Promise<void>;
  /** Stops the server and deletes its data. Can be called again. */
  stop(): Promise<void>;
}

/** A test's data need not survive the machine's loss of power. */
const testSettings: PostgresSettings = {
  fsync: false,
  synchronous_commit: false,
  full_page_writes: false,
  max_connections: 300,
  shared_buffers: '128MB',
};

/**
 * Starts a PostgreSQL server on a free port of 127.0.0.1, with an empty data directory.
 *
 * Nothing of it stays behind, however this process ends, and it does not keep this process alive.
 */
export async function startPostgres({
  version = '18',
  settings,
  fillData,
}: PostgresOptions = {}): Promise<PostgresServer> {
  const user = serverUser();
  const supervisor = new Supervisor();
  try {
    const directory = String(await supervisor.request({ method: 'create', user }));
    const native = await prepareBinaries(version, user, directory);
    if (fillData !== undefined) {
      const data = join(directory, 'data');
      await mkdir(data);
      await fillData(data);
      await chmod(data, 0o700);
      if (user) await changeOwner(data, user);
    }
    const filled = fillData !== undefined;
    const options = { native, settings: { ...testSettings, ...settings }, filled };
    const port = Number(await supervisor.request({ method: 'start', options }));
    return {
      url: `postgres://postgres@127.0.0.1:${port}/postgres`,
      port,
      version,
      directory,
      crash: async () => void (await supervisor.request({ method: 'crash' })),
      restart: async () => void (await supervisor.request({ method: 'restart' })),
      stop: () => supervisor.end(),
    };
  } catch (error) {
    await supervisor.end();
    throw error;
  }
}
