import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';
import type { KitProject } from './kit-project.ts';

/** The local half of Drizzle Studio: its page, which lives on the Internet, asks it for everything that it shows. */
export interface Studio {
  /** What the page learns when it opens. */
  open(): Promise<{ readonly dialect: string; readonly schemaFiles: readonly unknown[] }>;
  /** The rows that the page gets for a query. */
  rows(sql: string): Promise<readonly Record<string, unknown>[]>;
  stop(): Promise<void>;
}

/** Starts `drizzle-kit studio` as a process of its own. */
export async function startStudio({ directory }: KitProject): Promise<Studio> {
  const port = await freePort();
  const program = join(directory, 'node_modules', 'drizzle-kit', 'bin.cjs');
  // NODE_OPTIONS may name loaders that are meant for the tests only.
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(process.execPath, [program, 'studio', '--host=127.0.0.1', `--port=${port}`], {
    cwd: directory,
    env,
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text));
  const ask = async <T>(body: unknown): Promise<T> => {
    const response = await fetch(`http://127.0.0.1:${port}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    // The shape is drizzle-kit's, and what a test expects of it it compares.
    return (await response.json()) as T;
  };
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  try {
    await until(() => {
      if (child.exitCode !== null) throw new Error(said);
      return said.includes('up and running');
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    open: () => ask({ type: 'init' }),
    rows: (sql) => ask({ type: 'proxy', data: { sql, params: [], method: 'all' } }),
    stop,
  };
}
