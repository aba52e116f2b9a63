/**
 * Runs one scenario, or all: `npm run bench -- SCENARIO [--quick] [--check]`. Installs what the benches need, once, and goes on
 * in `main.ts` with the Node.js that came with it: some of the peers do not run on the oldest that this library supports.
 */
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const directory = fileURLToPath(new URL('.', import.meta.url));
const lock = `${directory}package-lock.json`;
/** What the lock file was when its packages were installed. */
const installedLock = `${directory}node_modules/.installed-lock.json`;

if (!existsSync(installedLock) || !readFileSync(lock).equals(readFileSync(installedLock))) {
  console.error('Installing what the benches need, once …');
  // Not `npm ci`: it refuses a lock file that lacks the optional binaries of other platforms.
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  copyFileSync(lock, installedLock);
}

const node = `${directory}node_modules/node/bin/node`;
const main = spawn(node, ['--import', 'tsx', `${directory}main.ts`, ...process.argv.slice(2)], {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  stdio: 'inherit',
});
// A Ctrl-C goes to both processes; this one waits until the other has put its servers away.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => main.kill('SIGTERM'));
main.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
