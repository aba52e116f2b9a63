/** What the demos of the examples share: a database with an example's tables, and its programs as processes beside the demo. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { databaseServer } from '../../test/support/database-server.ts';
import { createDatabase } from '../../test/support/databases.ts';

export interface Stage {
  readonly db: ReturnType<typeof connect>;
  /** The addresses of all databases, the first of which is that of `db`. Programs find them in DATABASE_URLS. */
  readonly urls: readonly string[];
  /** Starts a program of the example, such as `worker.ts`, in a process of its own that ends with the demo at the latest. */
  start(program: string, env?: Readonly<Record<string, string>>): StageProcess;
}

export interface StageProcess {
  readonly pid: number;
  /** The next thing that it sends with `process.send`. */
  message(): Promise<unknown>;
  /** SIGKILL, as by the kernel when memory is short. */
  kill(): Promise<void>;
  /** SIGTERM, as at a deploy. @throws Error unless it ends with 0 */
  stop(): Promise<void>;
}

/** How long anything on stage may take. */
const PATIENCE_MS = 90_000;

const leash = fileURLToPath(new URL('leash.ts', import.meta.url));

/**
 * Plays a demo on a database of its own, on the server of DATABASE_URL or else on one that comes from npm.
 *
 * @param example the `import.meta.url` of a file beside `drizzle/` and the programs
 * @param count how many databases it needs
 * @throws what the play throws, or an Error when one of its processes ends by itself
 */
export async function onStage(
  example: string,
  play: (stage: Stage) => Promise<void>,
  count = 1,
): Promise<void> {
  const path = (name: string) => fileURLToPath(new URL(name, example));
  const server = await databaseServer();
  const databases = await Promise.all(Array.from({ length: count }, () => createDatabase(server.url)));
  const urls = databases.map(({ url }) => url);
  const [url = ''] = urls;
  const db = connect(url);
  const children = new Set<ChildProcess>();
  try {
    for (const each of urls) {
      const migrated = each === url ? db : connect(each);
      await migrate(migrated, { migrationsFolder: path('drizzle') });
      if (migrated !== db) await migrated.$client.end();
    }
    await new Promise<void>((resolve, reject) => {
      const env = { ...process.env, DATABASE_URL: url, DATABASE_URLS: urls.join(' ') };
      const start = (program: string, more = {}) =>
        startProcess(path(program), { ...env, ...more }, children, reject);
      play({ db, urls, start }).then(resolve, reject);
    });
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await db.$client.end({ timeout: 1 });
    for (const database of databases) await database.drop();
    await server.stop();
  }
}

function connect(url: string) {
  return drizzle({ client: postgres(url, { max: 5, onnotice: () => {} }) });
}

function startProcess(
  program: string,
  env: NodeJS.ProcessEnv,
  children: Set<ChildProcess>,
  onCrash: (error: Error) => void,
): StageProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', '--import', leash, program], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  children.add(child);
  const exit = once(child, 'exit').finally(() => children.delete(child));
  let isEnding = false;
  exit.then(
    ([code, signal]) => isEnding || onCrash(new Error(`${program} has ended by itself: ${signal ?? code}`)),
    onCrash,
  );
  const end = async (signal: NodeJS.Signals) => {
    isEnding = true;
    child.kill(signal);
    const [code] = await exit;
    return code;
  };
  return {
    pid: child.pid ?? 0,
    message: async () => (await once(child, 'message', { signal: AbortSignal.timeout(PATIENCE_MS) }))[0],
    async kill() {
      await end('SIGKILL');
    },
    async stop() {
      const code = await end('SIGTERM');
      if (code !== 0) throw new Error(`${program} has ended with ${code}`);
    },
  };
}

/** Waits until `condition` returns something true, and returns that. @throws Error after a while */
export async function until<T>(what: string, condition: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (Date.now() > deadline) throw new Error(`Not within ${PATIENCE_MS / 1_000} seconds: ${what}`);
    await delay(50);
  }
}

/** Prints what should be and what is. @throws Error when a single one differs */
export function addUp(
  numbers: readonly (readonly [what: string, expected: unknown, found: unknown])[],
): void {
  const wrong = numbers.filter(([, expected, found]) => expected !== found);
  for (const [what, expected, found] of numbers) {
    console.log(
      `${expected === found ? '✓' : '✗'} ${what}: ${found}${expected === found ? '' : `, not ${expected}`}`,
    );
  }
  if (wrong.length > 0) throw new Error(`${wrong.length} of ${numbers.length} numbers do not add up`);
}
