import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { root } from './pages.ts';
import { HABITS, MOST_WORDS, sentencesOf, wordsIn } from './plain-english.ts';

/** Made by a program. */
const GENERATED = 'entries/dashboard/assets/bundled.ts';

/** Texts that no user reads, by what they are. */
const ALLOWED: ReadonlyMap<string, string> = new Map([
  ['enqueue: nobody stands', 'the name of a fault point'],
]);

/** What a source file says to people. */
interface Prose {
  /** Its comments; lines of `//` that follow each other are one. */
  readonly comments: readonly string[];
  /** Its strings and templates, and the texts of its pages. */
  readonly texts: readonly string[];
}

/** Reads TypeScript with its own parser, so that `//` in a string is no comment. */
function proseOf(path: string, code: string): Prose {
  const file = ts.createSourceFile(path, code, ts.ScriptTarget.Latest, true);
  const texts: string[] = [];
  // The code without its literals, in which only comments look like comments.
  let bare = '';
  const visit = (node: ts.Node): void => {
    const isText =
      ts.isLiteralExpression(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
    if (isText) texts.push(node.text);
    if (isText || ts.isJsxText(node)) {
      const start = ts.isJsxText(node) ? node.pos : node.getStart(file);
      bare += code.slice(bare.length, start) + ' '.repeat(node.end - start);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  bare += code.slice(bare.length);
  const ranges = [...bare.matchAll(/\/\/[^\n]*|\/\*.*?\*\//gs)];
  const comments: string[] = [];
  // Where the last one ended, if it was a line.
  let lineEnd: number | undefined;
  for (const { index, 0: text } of ranges) {
    const isLine = text.startsWith('//');
    const goesOn = isLine && lineEnd !== undefined && /^[ \t]*\n[ \t]*$/.test(code.slice(lineEnd, index));
    if (goesOn) comments.push(`${comments.pop()}\n${text.slice(2).trim()}`);
    else comments.push(isLine ? text.slice(2).trim() : linesOf(text));
    lineEnd = isLine ? index + text.length : undefined;
  }
  return { comments, texts };
}

/** A comment of several lines without its stars. */
function linesOf(comment: string): string {
  return comment
    .slice(2, -2)
    .split('\n')
    .map((line) => line.replace(/^\s*\*? ?/, ''))
    .join('\n');
}

/** What is wrong with a source file: one line each. */
function mistakesIn(path: string, code: string): string[] {
  const { comments, texts } = proseOf(path, code);
  const plain = comments.map((comment) =>
    comment
      .replaceAll(/```.*?```/gs, '')
      .replaceAll(/\{@link ([^}\s]+)[^}]*\}/g, '$1')
      .replaceAll(/`[^`]*`/g, 'code'),
  );
  const habits = [...plain, ...texts.filter((text) => !ALLOWED.has(text))]
    .map((text) => text.replaceAll(/\s+/g, ' ').trim())
    .filter((text) => HABITS.test(text));
  const long = plain.flatMap(sentencesOf).filter((sentence) => wordsIn(sentence) > MOST_WORDS);
  return [
    ...habits.map((text) => `${path}, a habit: ${text}`),
    ...long.map((text) => `${path}, too long: ${text.trim()}`),
  ];
}

test(`comments and messages name who acts, and comments have at most ${MOST_WORDS} words a sentence`, () => {
  const folder = join(root, 'src');
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (path) => /\.tsx?$/.test(path) && path !== GENERATED,
  );
  expect(paths.length).toBeGreaterThan(500);
  const sources = paths.map((path) => [path, readFileSync(join(folder, path), 'utf8')] as const);
  expect(sources.flatMap(([path, code]) => mistakesIn(path, code))).toEqual([]);
  for (const text of ALLOWED.keys())
    expect(
      sources.some(([, code]) => code.includes(text)),
      text,
    ).toBe(true);
});

const WORDS = 'word '.repeat(MOST_WORDS + 1);

test.each([
  '// Whoever holds it may go on.',
  '/** Whoever holds it may go on. */',
  'f(/* nobody */ 1)',
  'f(); // nobody',
  "throw new Error('nobody holds it');",
  'const a = `of $' + '{b} nobody`;',
  'const a = `nobody $' + '{b}`;',
  'const a = <p>nobody</p>;',
  '// It is no\n// id of a job.',
  `/** ${WORDS} */`,
  `// ${WORDS}`,
])('the check finds %s', (code) => {
  expect(mistakesIn('a.tsx', code)).toHaveLength(1);
});

test.each([
  "const a = 'http://a.example'; // …",
  '// `nobody` is a user of Linux.',
  '// There is no job.',
  `/**\n * ${'word '.repeat(30)}\n * - ${'word '.repeat(30)}\n */`,
  `const a = '${WORDS}';`,
])('and nothing in %s', (code) => {
  expect(mistakesIn('a.tsx', code)).toEqual([]);
});
