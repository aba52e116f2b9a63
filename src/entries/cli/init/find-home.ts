import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The files that `init` makes in one folder, without their ends. */
const MADE = ['jobs', 'handlers', 'worker'] as const;
/** Folders in which an app may keep its jobs already; the first three take the new files. */
const SAME_PURPOSE = ['queue', 'queues', 'jobs', 'job', 'handlers', 'worker', 'workers', 'background'];
const TAKES_FILES = SAME_PURPOSE.slice(0, 3);

/**
 * Where the new files go: into a folder that the app has for its jobs, or else into the folder of its
 * sources. They never go beside a file or a folder of the same purpose, which an import could take for ours.
 */
export function findHome(sources: string): string {
  if (isOurs(sources, 'jobs') || !isOccupied(sources)) return sources;
  const there = TAKES_FILES.map((name) => join(sources, name)).filter(isFolder);
  const free = [...there, join(sources, 'queue'), join(sources, 'drizzle-queue')].find(
    (folder) => isOurs(folder, 'jobs') || !isOccupied(folder),
  );
  return free ?? join(sources, 'drizzle-queue');
}

function isOccupied(folder: string): boolean {
  return (
    SAME_PURPOSE.some((name) => isFolder(join(folder, name))) ||
    MADE.some((name) => fileOf(folder, name) !== undefined && !isOurs(folder, name))
  );
}

/** Whether a file of this name uses the library: `init` created it, or a user who followed the docs. */
function isOurs(folder: string, name: string): boolean {
  const file = fileOf(folder, name);
  return file !== undefined && /['"]drizzle-queue['"/]/.test(readFileSync(file, 'utf8'));
}

function fileOf(folder: string, name: string): string | undefined {
  if (!isFolder(folder)) return undefined;
  const found = readdirSync(folder).find((entry) => new RegExp(`^${name}\\.[cm]?[jt]sx?$`).test(entry));
  return found === undefined ? undefined : join(folder, found);
}

function isFolder(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}
