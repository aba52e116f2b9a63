import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const directory = fileURLToPath(new URL('.', import.meta.url));
const lock = `${directory}package-lock.json`;
/** What the lock file was when its packages were installed. */
const installedLock = `${directory}node_modules/.installed-lock.json`;

/** The Node.js that comes with the benches: some of the peers do not run on the oldest that this library supports. */
export const node = `${directory}node_modules/node/bin/node`;

/** Installs what the benches need, once; the tests of the importers use the same peers. */
export function installBench(): void {
  if (existsSync(installedLock) && readFileSync(lock).equals(readFileSync(installedLock))) return;
  console.error('Installing what the benches need, once …');
  // Not `npm ci`: it refuses a lock file that lacks the optional binaries of other platforms.
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  copyFileSync(lock, installedLock);
}
