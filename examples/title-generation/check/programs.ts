/** The app and its workers, as processes beside the check. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

const running = new Set<ChildProcess>();

export interface Program {
  /** SIGTERM, as at a deploy; returns the exit code. */
  stop(): Promise<number | null>;
}

export function start(args: readonly string[], env: Readonly<Record<string, string>>): Program {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  running.add(child);
  const exit = once(child, 'exit').finally(() => running.delete(child));
  return {
    async stop() {
      child.kill('SIGTERM');
      const [code] = await exit;
      return code;
    },
  };
}

export function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}
