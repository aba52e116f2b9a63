/**
 * Shows the behaviours of the library on drivers × drizzle-orm × runtimes × servers: `npm run test:matrix [-- --all] [-- --only=TEXT]
 * [-- --workers=N]`.
 * Installs what that needs, once, in this folder, so that whoever only works on the library is spared it; goes on in `main.ts`.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const directory = fileURLToPath(new URL('.', import.meta.url));
const lock = `${directory}package-lock.json`;
/** What the lock file was when its packages were installed. */
const installedLock = `${directory}node_modules/.installed-lock.json`;

if (!existsSync(installedLock) || !readFileSync(lock).equals(readFileSync(installedLock))) {
  console.log('Installing what the matrix needs, once …');
  // Not `npm ci`: it refuses a lock file that lacks the optional binaries of other platforms.
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  copyFileSync(lock, installedLock);
}

const { main } = await import('./main.ts');
process.exitCode = await main(process.argv.slice(2));
