import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from './pages.ts';

const FOLDER = 'docs/decisions';

/** Pages whose sections are not decisions: the index, and the goals that were missed. */
const OTHERS = ['README.md', 'missed-goals.md'];

const pages = readdirSync(join(root, FOLDER)).filter((name) => !OTHERS.includes(name));
const entries = pages.flatMap((page) => entriesOf(page, readFileSync(join(root, FOLDER, page), 'utf8')));

describe('every decision', () => {
  test('says its date, its status and its code', () => {
    expect(entries.length).toBeGreaterThan(100);
    expect(entries.filter(({ facts }) => facts === undefined).map(({ place }) => place)).toEqual([]);
  });

  test('links to code that exists', () => {
    const links = entries.flatMap(({ place, facts }) =>
      [...(facts?.code ?? '').matchAll(/\]\(([^)]+)\)/g)].map(([, to = '']) => ({ place, to })),
    );
    const missing = links.filter(({ to }) => !existsSync(join(root, posix.join(FOLDER, to))));
    expect(missing).toEqual([]);
  });

  test('is in one place', () => {
    const titles = entries.map(({ title }) => title);
    expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  });

  test('is on a page of the index', () => {
    const index = readFileSync(join(root, FOLDER, 'README.md'), 'utf8');
    const listed = [...index.matchAll(/^- \[[^\]]+\]\(([^)#]+)\):/gm)].map(([, page]) => page);
    expect(listed.sort()).toEqual([...pages, 'missed-goals.md'].sort());
  });
});

test('a decision without its facts is found', () => {
  const page = [
    '## One',
    '',
    '*2026-01-02, changed 2026-01-03 · holds · [a.ts](a.ts)*',
    '',
    '## Two',
    '',
    'Text.',
  ];
  expect(entriesOf('page.md', page.join('\n')).map(({ title, facts }) => [title, facts?.code])).toEqual([
    ['One', '[a.ts](a.ts)'],
    ['Two', undefined],
  ]);
});

interface Entry {
  readonly title: string;
  readonly place: string;
  readonly facts: Readonly<Record<string, string>> | undefined;
}

function entriesOf(page: string, text: string): Entry[] {
  const [, ...sections] = `\n${text}`.split('\n## ');
  return sections.map((section) => {
    const [title = '', , line = ''] = section.split('\n');
    const facts =
      /^\*(?<decided>\d{4}-\d\d-\d\d)(?:, changed (?<changed>\d{4}-\d\d-\d\d))? · (?<status>holds|superseded by \[.+\]\(.+\)) · (?<code>\[.+\))\*$/.exec(
        line,
      );
    return { title, place: `${page}: ${title}`, facts: facts?.groups };
  });
}
