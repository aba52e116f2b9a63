import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { expect, test } from 'vitest';
import { parsePage, root } from '../docs/pages.ts';

const folder = join(root, 'examples');
const names = readdirSync(folder).filter((name) => existsSync(join(folder, name, 'README.md')));

/** The links of a page to files and headings of this repository. */
function linksOf(path: string): { to: string; anchor: string | undefined }[] {
  return parsePage(path, readFileSync(join(root, path), 'utf8'))
    .links.filter(({ target }) => !/^[a-z]+:/.test(target))
    .map(({ target }) => {
      const [file = '', anchor] = target.split('#');
      const to = file === '' ? path : posix.join(posix.dirname(path), file);
      return { to: decodeURIComponent(to), anchor };
    });
}

test('the list of the examples names them all', () => {
  expect(names.length).toBeGreaterThan(7);
  const listed = linksOf('examples/README.md').map(({ to }) => to);
  expect(names.map((name) => `examples/${name}/README.md`).filter((path) => !listed.includes(path))).toEqual(
    [],
  );
});

test.each(['', ...names])('the links of examples/%s lead to files and headings that exist', (name) => {
  const broken = linksOf(posix.join('examples', name, 'README.md')).filter(({ to, anchor }) => {
    if (!existsSync(join(root, to))) return true;
    if (anchor === undefined) return false;
    return !parsePage(to, readFileSync(join(root, to), 'utf8')).anchors.has(anchor);
  });
  expect(broken).toEqual([]);
});
