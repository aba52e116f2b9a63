/**
 * Runs changesets: `tsx scripts/changeset.ts version | publish`. They take the root of workspaces for no package of its own, so
 * package.json has none while they run. (The workspaces here are for tests, and are never published.)
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const manifest = `${root}package.json`;
const read = (): Record<string, unknown> => JSON.parse(readFileSync(manifest, 'utf8'));
const write = (content: object) => writeFileSync(manifest, `${JSON.stringify(content, null, 2)}\n`);

const before = read();
const { workspaces, ...rest } = before;
write(rest);
try {
  const changeset = `${root}.github/release/node_modules/.bin/changeset`;
  execFileSync(changeset, process.argv.slice(2), { cwd: root, stdio: 'inherit' });
} finally {
  const after = { ...read(), workspaces };
  // Where it was.
  write(Object.fromEntries(Object.keys(before).map((key) => [key, Reflect.get(after, key)])));
}
