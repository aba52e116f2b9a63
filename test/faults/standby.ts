import { cp, lstat, writeFile } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import pg from 'pg';
import { type PostgresServer, startPostgres } from '../support/embedded-postgres.ts';

/** The name under which a standby receives. */
const STANDBY = 'standby';

export interface StandbyOptions {
  /** Whether the primary waits for it with each commit; true unless given. */
  readonly synchronous?: boolean;
  /** Where it finds the primary; the primary's own port unless given. */
  readonly port?: number;
}

/** Starts a streaming standby of a server, made of a copy of its data while it runs. */
export async function startStandby(
  primary: PostgresServer,
  { synchronous = true, port = primary.port }: StandbyOptions = {},
): Promise<PostgresServer> {
  const client = new pg.Client({ connectionString: primary.url });
  await client.connect();
  try {
    const standby = await startPostgres({
      settings: {
        primary_conninfo: `host=127.0.0.1 port=${port} user=postgres application_name=${STANDBY}`,
      },
      fillData: (data) => copyData(client, join(primary.directory, 'data'), data),
    });
    if (!synchronous) return standby;
    await client.query(`alter system set synchronous_standby_names = '${STANDBY}'`);
    await client.query('select pg_reload_conf()');
    return standby;
  } finally {
    await client.end();
  }
}

/** Whether the server's commits wait for a standby, and one is there. */
export async function isSynchronous(primary: PostgresServer): Promise<boolean> {
  const rows = await ask(primary, "select from pg_stat_replication where sync_state = 'sync'");
  return rows.length > 0;
}

/** How far the server has written. */
export async function writtenTo(primary: PostgresServer): Promise<string> {
  const [row] = await ask<{ lsn: string }>(primary, 'select pg_current_wal_insert_lsn()::text as lsn');
  return row?.lsn ?? '';
}

/** Whether the standby has received and replayed so much. */
export async function hasReplayed(primary: PostgresServer, lsn: string): Promise<boolean> {
  const rows = await ask(primary, `select from pg_stat_replication where replay_lsn >= '${lsn}'`);
  return rows.length > 0;
}

/** Makes the standby a primary. */
export async function promote(standby: PostgresServer): Promise<void> {
  await ask(standby, 'select pg_promote(true, 60)');
}

async function ask<T extends pg.QueryResultRow>(server: PostgresServer, text: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  try {
    return (await client.query<T>(text)).rows;
  } finally {
    await client.end();
  }
}

/** What pg_basebackup does, which the binaries from npm lack. */
async function copyData(client: pg.Client, from: string, to: string): Promise<void> {
  await client.query(`select pg_backup_start('${STANDBY}', true)`);
  await cp(from, to, {
    recursive: true,
    filter: async (path) => {
      if (['postmaster.pid', 'postmaster.opts'].includes(basename(path))) return false;
      // The standby fetches the WAL itself; it only needs the folders.
      const [top] = relative(from, path).split(sep);
      return top !== 'pg_wal' || (await lstat(path)).isDirectory();
    },
  });
  const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
  await writeFile(join(to, 'backup_label'), rows[0]?.labelfile ?? '');
  await writeFile(join(to, 'standby.signal'), '');
}
