import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../test/support/free-port.ts';

let started: Promise<string | undefined> | undefined;

/** The URL of a Redis server that ends with this process; undefined when no `redis-server` is installed. */
export function startRedis(): Promise<string | undefined> {
  started ??= start();
  return started;
}

async function start(): Promise<string | undefined> {
  if (spawnSync('redis-server', ['--version']).status !== 0) return undefined;
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'bench-redis-'));
  const server = spawn(
    'redis-server',
    [
      '--port',
      String(port),
      '--dir',
      directory,
      '--save',
      '',
      '--appendonly',
      'yes',
      '--maxmemory-policy',
      'noeviction',
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  process.once('exit', () => {
    server.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
  await ready(server);
  // Neither it nor what it prints keeps the process from ending.
  server.unref();
  if (server.stdout instanceof Socket) server.stdout.unref();
  return `redis://127.0.0.1:${port}`;
}

async function ready(server: ChildProcess): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('exit', () => reject(new Error('redis-server has ended')));
    server.stdout?.on('data', (text: Buffer) => {
      if (text.includes('Ready to accept connections')) resolve();
    });
  });
}
