import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { afterEach, describe, expect, test } from 'vitest';
import { type PostgresOptions, type PostgresServer, startPostgres } from './embedded-postgres.ts';
import { hasPostgres } from './postgres-binaries.ts';
import { until } from './until.ts';

// Some platforms have no PostgreSQL on npm; the other tests then use the server of DATABASE_URL.
describe.skipIf(!hasPostgres('18'))('startPostgres', () => {
  const cleanups: (() => Promise<void>)[] = [];

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function start(options?: PostgresOptions): Promise<PostgresServer> {
    const server = await startPostgres(options);
    cleanups.push(server.stop);
    return server;
  }

  function connect(server: Pick<PostgresServer, 'url'>): postgres.Sql {
    const sql = postgres(server.url, { max: 1, onnotice: () => {} });
    cleanups.push(() => sql.end({ timeout: 0 }));
    return sql;
  }

  /** The first value which a query returns. */
  async function ask(server: Pick<PostgresServer, 'url'>, query: string): Promise<unknown> {
    const [row] = await connect(server).unsafe(query);
    return row && Object.values(row)[0];
  }

  /** A query that nobody waits for the end of. */
  function sleep(server: Pick<PostgresServer, 'url'>): Promise<string> {
    return connect(server)`SELECT pg_sleep(60)`.then(
      () => 'done',
      () => 'broken',
    );
  }

  function isSleeping(server: Pick<PostgresServer, 'url'>): Promise<unknown> {
    return ask(server, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
  }

  test('starts a server of version 18', async () => {
    const server = await start();
    expect(await ask(server, 'SELECT version()')).toMatch(/^PostgreSQL 18\./);
  });

  test.skipIf(!hasPostgres('14'))('starts a server of version 14', async () => {
    expect(await ask(await start({ version: '14' }), 'SELECT version()')).toMatch(/^PostgreSQL 14\./);
  });

  test.skipIf(!hasPostgres('13'))('starts a server of version 13', async () => {
    expect(await ask(await start({ version: '13' }), 'SELECT version()')).toMatch(/^PostgreSQL 13\./);
  });

  test('starts several servers at once, independent of each other', async () => {
    const [first, second] = await Promise.all([start(), start()]);
    await ask(first, 'CREATE TABLE only_here ()');
    expect(await ask(first, "SELECT to_regclass('only_here')::text")).toBe('only_here');
    expect(await ask(second, "SELECT to_regclass('only_here')::text")).toBeNull();
  });

  test('applies settings in place of those for tests, whatever characters they contain', async () => {
    const server = await start({ settings: { fsync: true, max_connections: 7, cluster_name: "it's" } });
    expect(await ask(server, 'SHOW fsync')).toBe('on');
    expect(await ask(server, 'SHOW synchronous_commit')).toBe('off');
    expect(await ask(server, 'SHOW max_connections')).toBe('7');
    expect(await ask(server, 'SHOW cluster_name')).toBe("it's");
  });

  test('tells what the server says when it does not start', async () => {
    await expect(start({ settings: { max_connections: 'many' } })).rejects.toThrow(
      /did not start[\s\S]*invalid value for parameter "max_connections": "many"/,
    );
  });

  test('stop() ends the server and removes its files, and can be called again', async () => {
    const server = await start();
    const pid = await serverPid(server);
    await Promise.all([server.stop(), server.stop()]);
    await server.stop();
    expect(isRunning(pid)).toBe(false);
    expect(existsSync(server.directory)).toBe(false);
  });

  test('stop() does not wait for clients', async () => {
    const server = await start();
    const query = sleep(server);
    await until(() => isSleeping(server));
    await server.stop();
    expect(await query).toBe('broken');
  });

  test('crash() breaks connections, and restart() brings the server back with its data', async () => {
    const server = await start({ settings: { synchronous_commit: true } });
    await ask(server, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await server.crash();
    await expect(ask(server, 'SELECT 1')).rejects.toThrow(/ECONNREFUSED/);
    await server.restart();
    expect(await ask(server, 'SELECT answer FROM kept')).toBe(42);
  });

  test('restart() restarts a running server', async () => {
    const server = await start();
    const pid = await serverPid(server);
    await server.restart();
    expect(await serverPid(server)).not.toBe(pid);
    expect(await ask(server, 'SELECT 1')).toBe(1);
  });

  test('stop() works on a crashed server', async () => {
    const server = await start();
    await server.crash();
    await server.stop();
    expect(existsSync(server.directory)).toBe(false);
  });

  describe('leaves nothing behind', () => {
    /** Starts a process that has started a server. */
    async function startOwner() {
      const owner = spawn(
        process.execPath,
        ['--import', 'tsx', fileURLToPath(new URL('fixtures/server-owner.ts', import.meta.url))],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      );
      cleanups.push(async () => void owner.kill('SIGKILL'));
      const [line] = await once(createInterface(owner.stdout), 'line');
      const server: Pick<PostgresServer, 'directory' | 'url'> = JSON.parse(String(line));
      return { owner, server, pid: await serverPid(server) };
    }

    test.each(['SIGKILL', 'SIGINT', 'SIGTERM'] as const)('when its owner ends by %s', async (signal) => {
      const { owner, server, pid } = await startOwner();
      expect(isRunning(pid)).toBe(true);
      owner.kill(signal);
      await until(() => !isRunning(pid) && !existsSync(server.directory));
    });

    test('when its owner is killed while a query runs', async () => {
      const { owner, server, pid } = await startOwner();
      const query = sleep(server);
      await until(() => isSleeping(server));
      owner.kill('SIGKILL');
      await until(() => !isRunning(pid) && !existsSync(server.directory));
      expect(await query).toBe('broken');
    });
  });
});

/** The process id of the postmaster, from the file in which it keeps it. */
async function serverPid({ directory }: Pick<PostgresServer, 'directory'>): Promise<number> {
  const content = await readFile(join(directory, 'data', 'postmaster.pid'), 'utf8');
  return Number(content.split('\n')[0]);
}

function isRunning(pid: number): boolean {
  try {
    // Signal 0 reaches nobody; it only tells whether there is somebody.
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
