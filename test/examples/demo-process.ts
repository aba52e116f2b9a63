import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import postgres from 'postgres';
import { onTestFinished } from 'vitest';
import { until } from '../support/until.ts';

/** Starts `npm run demo` as a terminal would: in a process group of its own. */
export function startDemo(env: NodeJS.ProcessEnv = {}, options: readonly string[] = []) {
  // Found again in the environment of whatever the demo starts, and in the name that its connections give.
  const mark = `shop-${randomUUID()}`;
  const npm = spawn('npm', ['run', '--silent', 'demo', '--', ...options], {
    detached: true,
    env: { ...process.env, ...env, PGAPPNAME: mark },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [npm.stdout, npm.stderr]) stream.on('data', (chunk) => (output += chunk));
  const ended = once(npm, 'close');
  const kill = (signal: NodeJS.Signals) => process.kill(-(npm.pid ?? 0), signal);
  onTestFinished(() => void (npm.exitCode ?? npm.signalCode ?? kill('SIGKILL')));
  return {
    kill,
    output: () => output,
    /** The exit code, as a shell would give it. */
    async ended(): Promise<number> {
      const [code, signal] = await ended;
      return signal === 'SIGINT' ? 130 : Number(code);
    },
    /** The name of the database that it uses on the server. */
    database: (serverUrl: string): Promise<string | undefined> =>
      withConnection(serverUrl, (sql) =>
        until(async () => {
          const [row] = await sql<{ datname: string }[]>`
          select datname from pg_stat_activity
          where application_name = ${mark} and datname like 'drizzle_queue_%'`;
          return row?.datname;
        }),
      ),
    /** Its processes that are still there. */
    async processes(): Promise<{ pid: number; command: string }[]> {
      const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
      const commands = await Promise.all(
        pids.map(async (pid) => {
          const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
          return {
            pid: Number(pid),
            command: (await read('environ')).includes(mark) ? await read('cmdline') : '',
          };
        }),
      );
      return commands.filter(({ command }) => command !== '');
    },
  };
}

async function withConnection<T>(url: string, use: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1 });
  try {
    return await use(sql);
  } finally {
    await sql.end();
  }
}
