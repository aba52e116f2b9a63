import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FSWatcher, lstatSync, readdirSync, watch } from 'node:fs';
import { join, sep } from 'node:path';
import type { ExitCode } from './exit-code.ts';
import { untilInterrupted } from './interruption.ts';
import { complain } from './terminal/complain.ts';

/** Of an editor that writes a file in several steps, or several files at once. */
const SETTLE_MS = 150;
/** A worker lets its handlers finish; then it is killed, and others find its jobs. */
const STOP_MS = 31_000;
/** Set for the child of `--watch`. */
const CHILD = 'DRIZZLE_QUEUE_WATCHED';
const MAX_FOLDERS = 2_000;
const SOURCE = /(\.([cm]?[jt]sx?|json)|^\.env(\..+)?)$/;
const PASSED_OVER = /^(node_modules|dist|build|out|coverage|\..*)$/;

/**
 * Runs this command as a child, which is {@link isWatched} and so does not watch itself, and starts it again
 * when a file below one of the folders changes. It ends with the first Ctrl-C, after the child.
 */
export async function restartOnChange(folders: readonly string[]): Promise<ExitCode> {
  const { signal, forget } = untilInterrupted();
  let changed: () => void = () => undefined;
  const watched = watchFolders(folders, () => changed());
  const interrupted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  try {
    while (!signal.aborted) {
      const change = new Promise<void>((resolve) => {
        changed = resolve;
      });
      const child = startChild();
      const closed = once(child, 'exit');
      const isOver = await Promise.race([closed.then(() => true), change.then(() => false), interrupted]);
      if (isOver === true && !signal.aborted) {
        // Its mistake is on the screen; the next change may fix it.
        complain('The worker has stopped; it restarts when a file changes.');
        await Promise.race([change, interrupted]);
      }
      await stopChild(child);
      if (signal.aborted) break;
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      complain('A file has changed: restarting.');
    }
    return 0;
  } finally {
    for (const each of watched) each.close();
    forget();
  }
}

/** In a group of its own, so that Ctrl-C reaches this process alone, which then stops it once. */
function startChild(): ChildProcess {
  return spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    detached: true,
    env: { ...process.env, [CHILD]: '1' },
  });
}

async function stopChild(child: ChildProcess): Promise<void> {
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  if (hasEnded()) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(timer);
}

/** Whether this process is the child of a `--watch`; to be asked before {@link stopWithParent}. */
export function isWatched(): boolean {
  return process.env[CHILD] !== undefined;
}

/** For a child: stops with a parent that was killed and could not say so, also while this one was loading. */
export function stopWithParent(stop: () => void): () => void {
  const isChild = isWatched();
  delete process.env[CHILD];
  if (!isChild) return () => undefined;
  if (!process.connected) stop();
  process.once('disconnect', stop);
  return () => process.off('disconnect', stop);
}

/** Whether a name in a folder is that of a folder which may have files of the app. */
function isWatchable(folder: string, name: string): boolean {
  if (PASSED_OVER.test(name)) return false;
  return lstatSync(join(folder, name), { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Each folder by itself: a recursive watcher would walk all packages, too. */
function watchFolders(roots: readonly string[], onChange: () => void): FSWatcher[] {
  const watchers: FSWatcher[] = [];
  const add = (folder: string) => {
    if (watchers.length >= MAX_FOLDERS) return;
    try {
      const watcher = watch(folder, (event, name) => {
        // A folder is named as it comes, and as it comes back: its watcher has gone with it.
        const added = name !== null && event === 'rename' && isWatchable(folder, name);
        if (added) add(join(folder, name));
        if (added || name === null || SOURCE.test(name)) onChange();
      });
      // A folder may be removed while it is watched.
      watcher.on('error', () => watcher.close());
      watchers.push(watcher);
      for (const name of readdirSync(folder)) if (isWatchable(folder, name)) add(join(folder, name));
    } catch {
      // It has gone meanwhile, or may not be read.
    }
  };
  const isWithin = (folder: string, of: string) => folder !== of && folder.startsWith(join(of, sep));
  for (const root of new Set(roots)) if (!roots.some((other) => isWithin(root, other))) add(root);
  return watchers;
}
