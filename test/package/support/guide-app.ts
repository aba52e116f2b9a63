import { spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, inject } from 'vitest';
import { until } from '../../support/until.ts';
// For the type of what `inject` returns.
import type {} from '../global-setup.ts';
import { type Guide, readGuide, type Step } from './read-guide.ts';
import { type Running, run, start } from './run-program.ts';
import { tools } from './tools.ts';

const fixtures = fileURLToPath(new URL('../fixtures/apps', import.meta.url));

/** An app that has Drizzle and knows nothing of the library, and its reader of a guide. */
export interface GuideApp {
  readonly directory: string;
  readonly guide: Guide;
  /** Does what a part of the guide says, step by step; answers what each command said on stdout. */
  follow(heading: string): Promise<string[]>;
  /** What is running of what the guide keeps running, by its command. */
  running(command: string): Running;
  /** Runs a command that the reader has seen before. */
  shell(command: string): Promise<string>;
  /** The same for one that keeps running; waits until what it serves can be reached, if it serves something. */
  launch(command: string, serves?: boolean): Promise<Running>;
  /** Ends everything that runs, as Ctrl-C would. */
  stopAll(): Promise<void>;
  /** Asks the app itself. */
  request(path: string, init?: RequestInit): Promise<Response>;
  /** Writes a line into the test's output: how long what took since the first step. */
  report(what: string): void;
  readonly port: number;
}

interface AppOptions {
  /** The folders of `fixtures/apps` that make the app, the later written over the earlier. */
  readonly from: readonly string[];
  /** The name of its page in `docs/guides`, without `.md`. */
  readonly guide: string;
  /** What its file of variables says. */
  readonly env: () => Readonly<Record<string, string>>;
  /** The name of that file; `.env` unless given. */
  readonly envFile?: string;
  /** Variables of the shell, which a reader would not set: for what stands for a service of others. */
  readonly shellEnv?: () => Readonly<Record<string, string>>;
  /** How the app's own packages are installed; `npm install` unless given. */
  readonly install?: string;
}

/** For Ctrl-C; a worker takes up to its `shutdownTimeoutMs`. */
const PATIENCE_MS = 40_000;

// Not `npm ci`: it refuses a lock file that lacks the optional binaries of other platforms.
const INSTALL = 'npm install --prefer-offline --no-audit --no-fund --loglevel=error';

/**
 * Gives the tests of a file an app of `fixtures/apps`, installed but for the library. Its guide is followed to the letter: only
 * the library's name in an install becomes the tarball, and the port 3000 becomes one that is free.
 */
export function useGuideApp(options: AppOptions): () => GuideApp {
  let app: GuideApp | undefined;
  let home: string | undefined;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), `drizzle-queue-guide-${options.guide}-`));
    app = await openApp(home, options);
  });
  afterAll(async () => {
    await app?.stopAll();
    if (home !== undefined) await rm(home, { recursive: true, force: true });
  });
  return () => {
    if (app === undefined) throw new Error('the app exists only while the tests run');
    return app;
  };
}

async function openApp(home: string, options: AppOptions): Promise<GuideApp> {
  const directory = join(home, 'app');
  for (const folder of options.from) {
    await cp(join(fixtures, folder), directory, {
      recursive: true,
      // What somebody has installed or built in the repository's copy is not part of it.
      filter: (path) => !/\/(node_modules|dist|build|\.next|\.output|\.svelte-kit)$/.test(path),
    });
  }
  // The reader's machine: Node.js 22, and Bun.
  const programs = join(home, 'bin');
  await mkdir(programs);
  await symlink(tools.node22, join(programs, 'node'));
  await symlink(tools.bun, join(programs, 'bun'));
  await symlink(tools.bun, join(programs, 'bunx'));
  if (spawnSync('curl', ['--version']).status !== 0) {
    await symlink(fileURLToPath(new URL('curl.mjs', import.meta.url)), join(programs, 'curl'));
  }
  const variables = Object.entries(options.env()).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(directory, options.envFile ?? '.env'), variables.join(''));

  const port = await freePort();
  const env = {
    PATH: `${programs}:${process.env.PATH}`,
    PORT: String(port),
    NEXT_TELEMETRY_DISABLED: '1',
    NUXT_TELEMETRY_DISABLED: '1',
  };
  const tarball = inject('packed').tarball;
  const literal = (command: string): string =>
    command
      .replaceAll('localhost:3000', `127.0.0.1:${port}`)
      .replace(/\b((?:npm install|bun add) )drizzle-queue\b/, `$1${tarball}`);
  const bash = ['-euo', 'pipefail', '-c'];
  const beganInstalling = performance.now();
  await run('bash', [...bash, options.install ?? INSTALL], { cwd: directory, env });
  const installed = performance.now();
  const runEnv = { ...env, ...options.shellEnv?.() };
  const shell = (command: string): Promise<string> =>
    run('bash', [...bash, literal(command)], { cwd: directory, env: runEnv });
  const inBackground = new Map<string, Running>();
  const launch = async (command: string, serves = true): Promise<Running> => {
    const running = start('bash', [...bash, literal(command).replace(/^(?:\w+=\S+ )*/, '$&exec ')], {
      cwd: directory,
      env: runEnv,
    });
    inBackground.set(command, running);
    await until(
      () => {
        if (running.hasEnded()) throw new Error(`${command} has ended:\n${running.output()}`);
        return serves ? isOpen(port) : running.output() !== '';
      },
      { timeoutMs: 300_000, intervalMs: 50 },
    );
    return running;
  };

  const guide = readGuide(options.guide);
  const name = `docs/guides/${options.guide}.md`;
  const seconds = (from: number, to = performance.now()): string => `${((to - from) / 1_000).toFixed(1)} s`;
  console.log(`${name}: the app's own packages took ${seconds(beganInstalling, installed)}`);

  let beganAt: number | undefined;
  const take = async (step: Step): Promise<string[]> => {
    beganAt ??= performance.now();
    if (step.do === 'write') {
      const path = join(directory, step.path);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, step.text);
      return [];
    }
    const began = performance.now();
    if (step.keepsRunning) {
      // A worker serves nothing: it says that it has started.
      await launch(step.command, !/worker/.test(step.command));
      return [];
    }
    const said = await shell(step.command);
    if (/^(npm install|bun add) /.test(step.command)) {
      console.log(`${name}: ${step.command} took ${seconds(began)}`);
    }
    return [said];
  };
  return {
    directory,
    guide,
    port,
    async follow(heading) {
      const steps = guide.get(heading);
      if (steps === undefined || steps.length === 0)
        throw new Error(`${name} has no steps under "${heading}"`);
      const said: string[] = [];
      for (const step of steps) {
        try {
          said.push(...(await take(step)));
        } catch (error) {
          throw new Error(`${step.at}: ${error instanceof Error ? error.message : error}`, { cause: error });
        }
      }
      return said;
    },
    running(command) {
      const found = inBackground.get(command);
      if (found === undefined) throw new Error(`${name} does not keep "${command}" running`);
      return found;
    },
    shell,
    launch,
    async stopAll() {
      const all = [...inBackground.values()];
      for (const running of all) running.interrupt();
      await until(() => all.every((running) => running.hasEnded()), { timeoutMs: PATIENCE_MS }).catch(
        () => undefined,
      );
      // Also what a program that has ended has left behind, if anything.
      await Promise.all(all.map((running) => running.stop()));
      inBackground.clear();
    },
    request: (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init),
    report(what) {
      console.log(`${name}: ${what} after ${seconds(beganAt ?? performance.now())}`);
    },
  };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const answer = (open: boolean): void => {
      socket.destroy();
      resolve(open);
    };
    socket.on('connect', () => answer(true)).on('error', () => answer(false));
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
