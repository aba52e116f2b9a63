import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';

/** Why tests on Redis are skipped here; `undefined`: they are not. */
export const WITHOUT_REDIS =
  spawnSync('redis-server', ['--version']).status === 0
    ? undefined
    : 'there is no redis-server (apt-get install redis-server)';

/** A Redis server for the tests of a file, that keeps what it is told and ends with them. */
export function useRedis(): { readonly url: string } {
  let server: ChildProcess | undefined;
  let directory = '';
  let url = '';
  const end = () => {
    server?.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  };
  beforeAll(async () => {
    if (WITHOUT_REDIS !== undefined) return;
    const port = await freePort();
    directory = mkdtempSync(join(tmpdir(), 'drizzle-queue-redis-'));
    const options = {
      dir: directory,
      save: '',
      appendonly: 'yes',
      'maxmemory-policy': 'noeviction',
      bind: '127.0.0.1',
    };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    // Nothing of ours for it to hold on to.
    server = spawn('redis-server', ['--port', String(port), ...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    process.once('exit', end);
    await ready(server);
    url = `redis://127.0.0.1:${port}`;
  });
  afterAll(() => {
    process.off('exit', end);
    end();
  });
  return {
    get url() {
      return url;
    },
  };
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
