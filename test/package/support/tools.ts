import { copyFile, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { run } from './run-program.ts';

const directory = fileURLToPath(new URL('..', import.meta.url));
const lock = `${directory}package-lock.json`;
/** What the lock file was when its packages were installed. */
const installedLock = `${directory}node_modules/.installed-lock.json`;

const bin = (name: string): string => `${directory}node_modules/.bin/${name}`;

/** The programs of `test/package/package.json`, and the compiler of the repository. */
export const tools = {
  attw: bin('attw'),
  bun: bin('bun'),
  bunx: bin('bunx'),
  esbuild: bin('esbuild'),
  node22: bin('node'),
  pnpm: bin('pnpm'),
  publint: bin('publint'),
  rolldown: bin('rolldown'),
  /** By major version. */
  typescript: {
    '5.9': fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url)),
    '7.0': `${directory}node_modules/typescript-7/bin/tsc`,
  },
  yarn: bin('yarn'),
};

/** Installs the tools, unless they are there already. */
export async function installTools(): Promise<void> {
  const read = (path: string) => readFile(path, 'utf8').catch(() => undefined);
  if ((await read(lock)) === (await read(installedLock))) return;
  console.error('Installing what the tests of the package need, once …');
  // Not `npm ci`: it refuses a lock file that lacks the optional binaries of other platforms.
  await run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: directory,
  });
  await copyFile(lock, installedLock);
}
