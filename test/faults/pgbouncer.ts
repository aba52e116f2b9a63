import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../support/free-port.ts';
import { serverUser } from '../support/server-user.ts';
import { until } from '../support/until.ts';

/** Whether the system has PgBouncer: `apt-get install pgbouncer`. */
export function hasPgBouncer(): boolean {
  return spawnSync('pgbouncer', ['--version']).status === 0;
}

export interface PgBouncerOptions {
  /** What gives a connection to the server another client: the end of a transaction, unless given. */
  readonly mode?: 'transaction' | 'session';
  /** How many clients it takes; 200 unless given. */
  readonly maxClients?: number;
  /** Whether it sends `DISCARD ALL` after each transaction too, and not only after each client of the session mode; false unless given. */
  readonly resetAlways?: boolean;
}

/** A PgBouncer before a server. */
export interface PgBouncer {
  readonly port: number;
  /** The URL of a database through it. */
  url(direct: string): string;
  stop(): Promise<void>;
}

/** Starts a PgBouncer before a server, with at most `poolSize` connections to it for each database. */
export async function startPgBouncer(
  serverUrl: string,
  poolSize: number,
  { mode = 'transaction', maxClients = 200, resetAlways = false }: PgBouncerOptions = {},
): Promise<PgBouncer> {
  const user = serverUser();
  const directory = mkdtempSync(join(tmpdir(), 'drizzle-queue-pgbouncer-'));
  const port = await freePort();
  const { hostname, port: serverPort, username } = new URL(serverUrl);
  const file = join(directory, 'pgbouncer.ini');
  writeFileSync(
    file,
    `
[databases]
* = host=${hostname} port=${serverPort} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = ${poolSize}
max_client_conn = ${maxClients}
server_reset_query = DISCARD ALL
server_reset_query_always = ${Number(resetAlways)}
`,
  );
  if (user) chownSync(directory, user.uid, user.gid);
  // It refuses to run as root, as PostgreSQL does.
  const child = spawn('pgbouncer', [file], { ...user, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const stop = async (): Promise<void> => {
    await end(child);
    rmSync(directory, { recursive: true });
  };
  process.once('exit', () => child.kill('SIGKILL'));
  try {
    await until(() => {
      if (child.exitCode !== null) throw new Error(`PgBouncer has ended:\n${output}`);
      return accepts(port);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    port,
    url(direct) {
      const url = new URL(direct);
      url.port = String(port);
      return url.href;
    },
    stop,
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exited;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
