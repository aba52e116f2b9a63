import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readPages, root } from './pages.ts';
import { HABITS, MOST_WORDS, sentencesOf, wordsIn } from './plain-english.ts';

/** The page that names tests by their titles, in links: they are quoted as they are. */
const QUOTES_TESTS = 'docs/guarantees.md';

/** The documentation, and the pages of the examples. */
const pages: readonly string[] = [
  ...readPages().map(({ path }) => path),
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'examples'))
    .map((name) => `examples/${name}/README.md`)
    .filter((path) => existsSync(join(root, path))),
];

/** A page without code, tags, and the targets of its links. */
function proseOf(text: string): string {
  return text
    .replaceAll(/```.*?```/gs, '')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/`[^`]*`/g, 'code');
}

test('the prose names who acts', () => {
  const found = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/```.*?```/gs, '');
    const lines = page === QUOTES_TESTS ? text.replaceAll(/\[[^\]]*\]\([^)]*\)/g, '') : text;
    return lines.split('\n').flatMap((line) => (HABITS.test(line) ? [`${page}: ${line.trim()}`] : []));
  });
  expect(found).toEqual([]);
});

test(`no sentence has more than ${MOST_WORDS} words`, () => {
  const found = pages.flatMap((page) =>
    sentencesOf(proseOf(readFileSync(join(root, page), 'utf8')))
      .filter((sentence) => wordsIn(sentence) > MOST_WORDS)
      .map((sentence) => `${page}: ${sentence.trim()}`),
  );
  expect(found).toEqual([]);
});

test('the checks find what they are for', () => {
  expect(HABITS.test('Whoever pops an item has it.')).toBe(true);
  expect(HABITS.test('There is no queue of jobs.')).toBe(true);
  expect(HABITS.test('There is no queue.')).toBe(false);
  const long = `${'word '.repeat(MOST_WORDS + 1)}end.`;
  expect(sentencesOf(proseOf(`A short one. ${long}`)).map(wordsIn)).toEqual([3, MOST_WORDS + 2]);
  expect(wordsIn('From 2.75 to 2.08 ms')).toBe(3);
});
