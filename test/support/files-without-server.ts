import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const test = fileURLToPath(new URL('..', import.meta.url));
/** Suites with configurations of their own. */
const APART = /^(?:browser|citus|faults|import|matrix|package|site)\//;
/** A file with this code uses the server, or starts a process. */
const NEEDS = /\binject\(|node:child_process/;
/** A relative import, as this repository writes them. */
const IMPORT = /\bfrom '(\.[^']+\.ts)'|\bimport\('(\.[^']+\.ts)'\)/g;

/** The fast test files that, with everything that they import from `test/`, use no server and start no process. */
export function filesWithoutServer(): string[] {
  const names = readdirSync(test, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?<!\.slow|\.v1)\.test\.ts$/.test(name) && !APART.test(name.replaceAll('\\', '/')))
    .map((name) => join(test, name));
  return names
    .filter((name) => !needsMore(name))
    .map((name) => `test/${relative(test, name).replaceAll('\\', '/')}`);
}

function needsMore(start: string): boolean {
  const seen = new Set([start]);
  for (const path of seen) {
    const text = readFileSync(path, 'utf8');
    if (NEEDS.test(text)) return true;
    for (const [, from, imported] of text.matchAll(IMPORT)) {
      const target = join(dirname(path), from ?? imported ?? '');
      // The sources use no server by themselves. What does not exist is part of a test's own text.
      if (target.startsWith(test) && existsSync(target)) seen.add(target);
    }
  }
  return false;
}
