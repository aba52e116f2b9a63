import { readFileSync } from 'node:fs';
import { root } from './repository.ts';

const { exports }: { exports: Record<string, unknown> } = JSON.parse(
  readFileSync(`${root}package.json`, 'utf8'),
);

/** The package's entries, as apps write them, and the file of each. */
export const ENTRIES: ReadonlyMap<string, string> = new Map(
  Object.keys(exports)
    .filter((path) => path !== './package.json')
    .map((path) => [
      path.replace(/^\./, 'drizzle-queue'),
      `src/${path.slice(2)}${path === '.' ? '' : '/'}index.ts`,
    ]),
);
