import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { withoutFollowed } from './followed-guides.ts';
import { type Page, parsePage, readPages, root } from './pages.ts';

describe('links', () => {
  test('lead to files and headings that exist', () => {
    expect(brokenLinks(readPages())).toEqual([]);
  });

  test('of what is packed lead to what is packed, or into the repository by their whole address', () => {
    const { files }: { files: string[] } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const left = files.filter((name) => name.startsWith('!')).map((name) => name.slice(1));
    const packed = readPages().filter(
      ({ path }) =>
        !left.some((name) => name === path || (name.endsWith('/**') && path.startsWith(name.slice(0, -2)))),
    );
    expect(packed.filter(({ path }) => path.startsWith('docs/decisions/'))).toEqual([]);
    const there = new Set(['LICENSE', 'package.json', ...files, ...packed.map(({ path }) => path)]);
    expect(left.length).toBeGreaterThan(0);
    expect(
      packed.flatMap(({ path, links }) =>
        links.flatMap(({ target, line }) => {
          const [file = ''] = target.split('#');
          if (file === '' || /^[a-z]+:/.test(target)) return [];
          const to = posix.normalize(posix.join(posix.dirname(path), file));
          return there.has(to) ? [] : [`${path}:${line}: ${to} is not in the package`];
        }),
      ),
    ).toEqual([]);
  });

  test('that lead nowhere are found', () => {
    const page = parsePage(
      'docs/page.md',
      [
        '# The `first` heading, really',
        '[here](#the-first-heading-really) [there](../README.md) [out](https://example.com/nowhere) `[code](nowhere.md)`',
        '[file](nowhere.md) [heading](#second)',
        '[heading of another](../README.md#no-such-heading)',
        '[unpacked](https://github.com/drizzle-queue/drizzle-queue/blob/main/nowhere.ts)',
      ].join('\n'),
    );
    expect(brokenLinks([page, parsePage('README.md', '# Title')])).toEqual([
      'docs/page.md:3: nowhere.md does not exist',
      'docs/page.md:3: docs/page.md has no heading #second',
      'docs/page.md:4: README.md has no heading #no-such-heading',
      'docs/page.md:5: nowhere.ts does not exist',
    ]);
  });
});

describe('commands', () => {
  test('name scripts of package.json and programs that are installed', () => {
    expect(unknownCommands(withoutFollowed(readPages()))).toEqual([]);
  });

  test('that do not exist are found', () => {
    const page = parsePage(
      'docs/page.md',
      ['```sh', 'npm ci && npm run demo', 'npm run nonsense', 'npx nonsense', 'npx tsc', '```'].join('\n'),
    );
    expect(unknownCommands([page])).toEqual([
      'docs/page.md:3: package.json has no script "nonsense"',
      'docs/page.md:4: no installed package has a program "nonsense"',
    ]);
  });
});

/** Pages that are packed have such links to files that are not. */
const IN_REPOSITORY = /^https:\/\/github\.com\/drizzle-queue\/drizzle-queue\/(blob|tree)\/main\//;

function brokenLinks(pages: readonly Page[]): string[] {
  const byPath = new Map(pages.map((page) => [page.path, page]));
  return pages.flatMap(({ path, links }) =>
    links.flatMap(({ target, line }) => {
      const isOurs = IN_REPOSITORY.test(target);
      if (/^[a-z]+:/.test(target) && !isOurs) return [];
      const [file = '', anchor] = target.replace(IN_REPOSITORY, '').split('#');
      const folder = isOurs ? '.' : posix.dirname(path);
      const to = file === '' ? path : posix.normalize(posix.join(folder, file));
      if (!byPath.has(to) && !existsSync(join(root, to))) return [`${path}:${line}: ${file} does not exist`];
      if (anchor === undefined || byPath.get(to)?.anchors.has(anchor)) return [];
      return [`${path}:${line}: ${to} has no heading #${anchor}`];
    }),
  );
}

function unknownCommands(pages: readonly Page[]): string[] {
  const manifest = readFileSync(join(root, 'package.json'), 'utf8');
  const scripts = scriptsOf(manifest);
  const { bin: ownPrograms }: { bin: Record<string, string> } = JSON.parse(manifest);
  return pages.flatMap(({ path, blocks }) =>
    blocks
      .filter(({ language }) => language === 'sh')
      .flatMap(({ code, line }) =>
        code.split('\n').flatMap((text, index) => {
          const at = `${path}:${line + index}`;
          return [
            ...[...text.matchAll(/\bnpm run ([\w:-]+)/g)]
              .filter(([, script = '']) => !scripts.has(script))
              .map(([, script]) => `${at}: package.json has no script "${script}"`),
            ...[...text.matchAll(/\bnpx ([\w-]+)/g)]
              .filter(
                ([, program = '']) =>
                  !(program in ownPrograms || existsSync(join(root, 'node_modules/.bin', program))),
              )
              .map(([, program]) => `${at}: no installed package has a program "${program}"`),
          ];
        }),
      ),
  );
}

function scriptsOf(packageJson: string): Set<string> {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(packageJson);
  return new Set(Object.keys(scripts));
}
