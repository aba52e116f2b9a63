/** Builds the documentation's site into site/dist: `npm run site`. Installs what that needs, once, in this folder. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { root } from './repository.ts';

const directory = `${root}site/`;
const lock = `${directory}package-lock.json`;
/** What the lock file was when its packages were installed. */
const installedLock = `${directory}node_modules/.installed-lock.json`;

if (!existsSync(installedLock) || !readFileSync(lock).equals(readFileSync(installedLock))) {
  console.log('Installing what the site is built with, once …');
  // Not `npm ci`: it refuses a lock file that lacks the optional binaries of other platforms.
  const options = ['--no-save', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['install', ...options], { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] });
  copyFileSync(lock, installedLock);
}

// They are installed by now.
const { writeReference } = await import('./reference.ts');
await writeReference();
const { build } = await import('vitepress');
await build(directory);
