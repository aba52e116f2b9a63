import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const ENDS = ['ts', 'mts', 'cts', 'js', 'mjs', 'cjs'];

/** The nearest `NAME.config.*`, from a folder up to the root; `undefined` where there is none. */
export function findConfig(name: string, from: string): string | undefined {
  return findUpwards(
    ENDS.map((end) => `${name}.config.${end}`),
    from,
  );
}

/** The nearest of some files, from a folder up to the root. */
export function findUpwards(names: readonly string[], from: string): string | undefined {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const found = names.map((name) => join(folder, name)).find((path) => existsSync(path));
    if (found !== undefined) return realpathSync(found);
    if (dirname(folder) === folder) return undefined;
  }
}
