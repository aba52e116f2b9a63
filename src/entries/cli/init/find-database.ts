import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const MOST_FILES = 2_000;
const PASSED_OVER = /^(node_modules|dist|build|out|coverage|tests?|__tests__|e2e|examples|\..*)$/;
const SOURCE = /(?<!\.(d|spec|test|e2e-spec))\.[cm]?[jt]s$/;
const EXPORTED = /^export\s+const\s+(\w+)[^=\n]*=\s*drizzle\s*[(<]/m;
const LOCAL = /^const\s+(\w+)[^=\n]*=\s*drizzle\s*[(<]/m;
const CALL = /\bdrizzle\s*(<[^(]*>)?\(/;
const IMPORT = /from\s+['"]drizzle-orm\//;

export interface ExportedDatabase {
  readonly file: string;
  readonly name: string;
}

/** The first file that exports what `drizzle(…)` returns, and the first that only calls it. */
export function findDatabase(folders: readonly string[]): {
  readonly database: ExportedDatabase | undefined;
  readonly hidden: string | undefined;
} {
  let hidden: string | undefined;
  const looked = new Set<string>();
  for (const file of filesOf(folders)) {
    if (looked.has(file)) continue;
    if (looked.size >= MOST_FILES) break;
    looked.add(file);
    const text = readFileSync(file, 'utf8');
    const name = exportedDatabase(text);
    if (name !== undefined) return { database: { file, name }, hidden };
    if (IMPORT.test(text) && CALL.test(text)) hidden ??= file;
  }
  return { database: undefined, hidden };
}

function exportedDatabase(text: string): string | undefined {
  const exported = EXPORTED.exec(text)?.[1];
  const local = LOCAL.exec(text)?.[1];
  if (exported !== undefined || local === undefined) return exported;
  return new RegExp(`^export\\s*\\{[^}]*\\b${local}\\b(?!\\s+as\\b)[^}]*\\}`, 'm').test(text)
    ? local
    : undefined;
}

/** The source files below some folders, one after the other, the nearest first. */
function* filesOf(given: readonly string[]): Generator<string> {
  for (const folder of given) {
    const folders = [folder];
    for (let next = folders.shift(); next !== undefined; next = folders.shift()) {
      for (const entry of readdirSync(next, { withFileTypes: true })) {
        const path = join(next, entry.name);
        if (!entry.isDirectory()) {
          if (SOURCE.test(entry.name)) yield path;
        } else if (!PASSED_OVER.test(entry.name)) folders.push(path);
      }
    }
  }
}
