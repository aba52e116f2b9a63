import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { Output } from '../../src/entries/cli/terminal/output.ts';
import { cutTo, widthOf } from '../../src/entries/cli/terminal/width-of.ts';

test.each([
  ['plain', 5],
  ['漢字', 4],
  ['한글', 4],
  ['e\u0301', 1],
  ['\u{1fae0}', 2],
  // A family is one picture, of several that are joined.
  ['\u{1f468}\u200d\u{1f469}\u200d\u{1f467}', 2],
  ['\u{1f1e9}\u{1f1ea}', 2],
])('%j takes %i columns', (text, columns) => {
  expect(widthOf(text)).toBe(columns);
});

test('a text is cut between the signs that people see', () => {
  expect(cutTo('ab\u{1f468}\u200d\u{1f469}\u200d\u{1f467}cd', 4)).toBe('ab…');
  expect(cutTo('ab\u{1f468}\u200d\u{1f469}\u200d\u{1f467}cd', 5)).toBe(
    'ab\u{1f468}\u200d\u{1f469}\u200d\u{1f467}…',
  );
  expect(cutTo('abc', 3)).toBe('abc');
});

const LONG = JSON.stringify({ text: 'x'.repeat(5_000) });

test.each([
  ['a pipe gets a cell whole', false, LONG.length],
  ['a terminal gets as much as it is wide', true, 40],
])('%s', (_, isTTY, width) => {
  const out = { isTTY, columns: 42, write: () => true, once: () => out, off: () => out };
  // Only these are used.
  const output = new Output({ json: false, out: out as unknown as NodeJS.WriteStream });
  const [, row = ''] = output.rows(['PAYLOAD'], [[{ text: LONG }]], new Set());
  expect(Math.abs(widthOf(row) - width)).toBeLessThan(3);
  expect(row.endsWith('…')).toBe(isTTY);
});

test('what the command bundles for this is named with its licence in the notices', async () => {
  const notices = await readFile('NOTICES.md', 'utf8');
  for (const name of ['string-width', 'get-east-asian-width', 'strip-ansi', 'ansi-regex'])
    expect(notices).toContain((await readFile(`node_modules/${name}/license`, 'utf8')).trim());
});
