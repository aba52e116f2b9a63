import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';

/** Folders in which frameworks and people keep what runs on the server, the likelier first. */
const BASES = ['src', 'server', 'lib', 'app'];
/** Folders that hold tables and nothing else of the app. */
const OF_TABLES = /^(db|database|drizzle|schemas?|models|tables)$/i;

export interface Sources {
  /** Where new files go: beside the folder of the tables, if that is among the sources. */
  readonly home: string;
  /** The whole of the app's sources. */
  readonly base: string;
}

/** Finds where an app keeps its code: `src`, `server` in Nuxt, `lib` in Next.js, or the root. */
export function findSources(
  root: string,
  schemaFiles: readonly string[],
  packages: ReadonlySet<string>,
): Sources {
  const bases = BASES.map((name) => join(root, name)).filter((path) => existsSync(path));
  const homes = new Set(schemaFiles.map((file) => homeOf(file, bases)));
  const [home] = homes;
  // Elsewhere a `lib` may be what a build has made; and an `app` may be what browsers get.
  const likely = packages.has('next') ? ['src', 'server', 'lib'] : ['src', 'server'];
  const base =
    bases.find((path) => isWithin(path, home)) ??
    bases.find((path) => likely.includes(basename(path))) ??
    root;
  return { home: homes.size === 1 && home !== undefined ? home : base, base };
}

/** The folder above that of a table; `undefined` where that is in none of the bases. */
function homeOf(file: string, bases: readonly string[]): string | undefined {
  const base = bases.find((path) => isWithin(path, file));
  if (base === undefined) return undefined;
  const parts = relative(base, dirname(file)).split(sep);
  const last = parts.findLastIndex((part) => !OF_TABLES.test(part));
  return last === parts.length - 1 ? base : join(base, ...parts.slice(0, last + 1));
}

function isWithin(folder: string, path: string | undefined): boolean {
  return path !== undefined && (path === folder || path.startsWith(`${folder}${sep}`));
}
