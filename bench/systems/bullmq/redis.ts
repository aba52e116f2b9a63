import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
  server.unref();
  process.once('exit', () => {
    server.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
  await ready(server);
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

async function freePort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
