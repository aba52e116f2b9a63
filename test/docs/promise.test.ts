import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './pages.ts';

const page = readFileSync(join(root, 'docs/guarantees.md'), 'utf8');
const [, section = ''] = page.split('\n## The promise\n');
const [table = ''] = section.split('\n## ');

/** The rows of the table: what is promised, the test's name, and its file. */
const promises = [
  ...table.matchAll(/^\| (?<what>.+) \| \[(?<name>.+)\]\(https:.+\/blob\/main\/(?<file>test\/.+)\) \|$/gm),
].map(({ groups = {} }) => [groups.what ?? '', groups.name ?? '', groups.file ?? ''] as const);

test('every row of the promise names a test', () => {
  const rows = table.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| What holds'));
  expect(promises).toHaveLength(rows.length);
  expect(promises.length).toBeGreaterThanOrEqual(9);
});

// A link alone would hold when the test itself is renamed or removed.
test.each(promises)('%s: held by a test of that name', (_, name, file) => {
  const titles = readFileSync(join(root, file), 'utf8').matchAll(
    /\btest(?:\.\w+)*\(\s*(['"`])(?<title>.*?)\1/gs,
  );
  // What is computed in a title is a … on the page.
  const written = [...titles].map(({ groups }) => groups?.title?.replaceAll(/\$\{[^}]*\}/g, '…'));
  expect(written).toContain(name);
});
