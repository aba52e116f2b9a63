import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { root } from './repository.ts';

const { exports }: { exports: Record<string, unknown> } = JSON.parse(
  readFileSync(`${root}package.json`, 'utf8'),
);

/** As the compiler finds them. */
const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);

function fileOf(entry: string): string {
  const [file] = config.compilerOptions.paths[entry] ?? [];
  if (typeof file !== 'string') throw new Error(`tsconfig.json has no path for ${entry}`);
  return file.replace(/^\.\//, '');
}

/** The package's entries, as apps write them, and the file of each. */
export const ENTRIES: ReadonlyMap<string, string> = new Map(
  Object.keys(exports)
    .filter((path) => path !== './package.json')
    .map((path) => path.replace(/^\./, 'drizzle-queue'))
    .map((entry) => [entry, fileOf(entry)]),
);
