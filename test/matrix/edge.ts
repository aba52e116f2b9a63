import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, handle } from 'drizzle-queue';
import { build } from 'esbuild';
import postgres from 'postgres';
import { freePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';
import { withPassword } from './program/open-driver.ts';
import { welcome } from './program/welcome.ts';

/** One that has no `node:` modules and no process; `internet` reaches the servers of the tests, too. */
const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "edge.mjs", esModule = embed "edge.mjs")],
      compatibilityDate = "2025-01-01",
      bindings = [
        (name = "DATABASE_URL", fromEnvironment = "DATABASE_URL"),
        (name = "NEON", fromEnvironment = "NEON"),
      ],
    )),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", http = (), service = "main")],
);
`;

/** The program of Cloudflare's runtime, or `undefined` where npm has it not for this platform. */
export function workerd(): string | undefined {
  const { resolve } = createRequire(import.meta.url);
  try {
    const architecture = process.arch === 'x64' ? '64' : process.arch;
    return resolve(`@cloudflare/workerd-${process.platform}-${architecture}/bin/workerd`);
  } catch {
    return undefined;
  }
}

/**
 * Enqueues in Cloudflare's runtime over neon-http, from a bundle of the whole of `drizzle-queue`, and runs the jobs in Node.js.
 *
 * @returns what went wrong, if anything
 */
export async function showEdge(
  program: string,
  place: { url: string; neon: string },
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'drizzle-queue-edge-'));
  try {
    await bundleForEdge(join(folder, 'edge.mjs'));
    await writeFile(join(folder, 'config.capnp'), CONFIG);
    const { ids, found } = await answerOf(program, folder, place);
    if (ids.length !== 3 || JSON.stringify(found) !== '{"user":1}')
      return `answered ${JSON.stringify({ ids, found })}`;
    const users = await usersOf(place.url);
    return String(users) === '1,2,3' ? undefined : `the jobs of the users ${users} were done, not of 1,2,3`;
  } catch (error) {
    return String(error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function bundleForEdge(outfile: string): Promise<void> {
  const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
  await build({
    entryPoints: [path('program/edge.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    // Not "for Node.js": an import of a module of its own ends the build, as on the edge.
    platform: 'browser',
    conditions: ['workerd', 'worker', 'browser'],
    target: 'es2022',
    nodePaths: [path('node_modules')],
    tsconfig: path('../../tsconfig.json'),
    logLevel: 'warning',
  });
}

interface Answer {
  readonly ids: readonly string[];
  readonly found: unknown;
}

async function answerOf(
  program: string,
  folder: string,
  place: { url: string; neon: string },
): Promise<Answer> {
  const port = await freePort();
  const child = spawn(
    program,
    ['serve', join(folder, 'config.capnp'), `--socket-addr=http=127.0.0.1:${port}`],
    {
      env: { ...process.env, DATABASE_URL: withPassword(place.url), NEON: place.neon },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  try {
    const response = await until(() => {
      if (child.exitCode !== null) throw new Error(`workerd ended with ${child.exitCode}`);
      return fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
    });
    const text = await response?.text();
    if (!response?.ok || text === undefined) throw new Error(text);
    return JSON.parse(text);
  } finally {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
}

/** The users whose jobs a worker in this process has done. */
async function usersOf(url: string): Promise<number[]> {
  const client = postgres(url, { max: 4, onnotice: () => undefined });
  const users: number[] = [];
  const worker = createWorker(drizzle({ client }), {
    queue: createQueue(),
    log: false,
    handlers: [handle(welcome, async ({ payload }) => void users.push(payload.user))],
  });
  try {
    await worker.start();
    await until(async () => users.length >= 3);
  } finally {
    await worker.stop();
    await client.end();
  }
  return users.sort();
}
